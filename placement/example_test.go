// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func ExampleView_Explain() {
	circle, err := ring.New(ring.Config{}, "gw-1", "gw-2", "gw-3")
	if err != nil {
		fmt.Println(err)
		return
	}
	ready := func(id ring.GatewayID, attached int) placement.Gateway {
		return placement.Gateway{ID: id, Endpoint: string(id) + ":7000", State: placement.Ready, Known: true,
			Counts: placement.Counts{Attached: attached}}
	}
	stopping := ready("gw-3", 4)
	stopping.State = placement.Draining
	view := placement.NewView(placement.Picture{
		Self: "gw-1", Ring: circle, Live: 12, Version: 7,
		Gateways: []placement.Gateway{ready("gw-1", 6), ready("gw-2", 2), stopping},
	})
	fmt.Print(view.Explain(placement.Request{Member: "edge-17"}))
	// Output:
	// edge-17 -> gw-2 (owner): 13 live on 2 gateways, share 6, cap 7
	// ring 03d6a9a75d23ddf5, view 7, 0s old
	//   0  gw-2  ready     2 (2 attached, 0 held, 0 reserved)  chosen: the first below 6
	//   1  gw-1  ready     6 (6 attached, 0 held, 0 reserved)  after the chosen one
	//   2  gw-3  draining  4 (4 attached, 0 held, 0 reserved)  takes nobody
}
