module github.com/evenring/evenring/redirect/redirectws

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/evenring/evenring v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/buraksezer/consistent v0.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/evenring/evenring => ../..
