// SPDX-License-Identifier: Apache-2.0

package redirect

import "github.com/evenring/evenring/redirect/internal/endpoint"

// CheckEndpoint returns why an endpoint is not a host and a port and nothing
// else, or nil if it is: "name:port", "1.2.3.4:port" or "[::1]:port". A [Transport]
// that gives addresses with a scheme or a path a meaning checks those that come
// from a gateway, lest a redirect choose more than where to dial. The error
// does not repeat the endpoint.
func CheckEndpoint(text string) error {
	_, err := endpoint.Parse(text)
	return err
}
