// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"fmt"

	"github.com/evenring/evenring/ring"
)

func ExampleNew() {
	r, err := ring.New(ring.Config{}, "gw-2", "gw-0", "gw-1", "gw-0")
	if err != nil {
		panic(err)
	}
	for i, id := range r.Gateways() {
		fmt.Println(i, id, r.Share(id))
	}
	fmt.Printf("largest share: %.3f of the even one\n", r.LargestShare())
	// Output:
	// 0 gw-0 1311
	// 1 gw-1 1394
	// 2 gw-2 1394
	// largest share: 1.020 of the even one
}

func ExampleNew_faults() {
	_, err := ring.New(ring.Config{Slots: 4096, Load: 1}, "gw-0", "")
	fmt.Println(err)
	// Output:
	// ring: Config.Slots is 4096; it must be a prime of at most 65521
	// ring: Config.Load is 1; it must be finite and above 1
	// ring: gateways[1] is empty
}

func ExampleRing_Owner() {
	r, _ := ring.New(ring.Config{}, "gw-0", "gw-1", "gw-2")
	for _, m := range []ring.MemberID{"builder-7", "builder-8", "builder-9"} {
		if g, ok := r.Owner(m); ok {
			fmt.Println(m, "belongs to", g)
		}
	}
	var nobody *ring.Ring
	if _, ok := nobody.Owner("builder-7"); !ok {
		fmt.Println("no gateways: serve locally")
	}
	// Output:
	// builder-7 belongs to gw-0
	// builder-8 belongs to gw-0
	// builder-9 belongs to gw-1
	// no gateways: serve locally
}

func ExampleRing_Clockwise() {
	r, _ := ring.New(ring.Config{}, "gw-0", "gw-1", "gw-2", "gw-3")
	served := map[ring.GatewayID]int{"gw-0": 3, "gw-1": 3, "gw-2": 2, "gw-3": 3}
	for g := range r.Clockwise("builder-7") {
		if served[g] < 3 {
			fmt.Println(g, "has room")
			break
		}
		fmt.Println(g, "is full")
	}
	// Output:
	// gw-0 is full
	// gw-1 is full
	// gw-3 is full
	// gw-2 has room
}

func ExampleRing_Walk() {
	r, _ := ring.New(ring.Config{}, "gw-0", "gw-1", "gw-2", "gw-3")
	served := [...]int{3, 3, 2, 3} // by position in ID order
	for i := range r.Walk("builder-7") {
		if served[i] < 3 {
			fmt.Println(r.Gateway(i), "has room")
			break
		}
	}
	// Output:
	// gw-2 has room
}

func ExampleRing_Without() {
	all, _ := ring.New(ring.Config{}, "gw-0", "gw-1", "gw-2")
	rest, _ := ring.New(ring.Config{}, "gw-0", "gw-2")
	fmt.Println(all.Without("gw-1").Fingerprint() == rest.Fingerprint())
	fmt.Println(all.Len(), all.Without("gw-1").Len())
	// Output:
	// true
	// 3 2
}

func ExampleRing_Fingerprint() {
	here, _ := ring.New(ring.Config{}, "gw-0", "gw-1", "gw-2")
	there, _ := ring.New(ring.Config{}, "gw-2", "gw-1", "gw-0")
	behind, _ := ring.New(ring.Config{}, "gw-0", "gw-1")
	fmt.Printf("%016x\n", here.Fingerprint())
	fmt.Println(here.Fingerprint() == there.Fingerprint(), here.Fingerprint() == behind.Fingerprint())
	// Output:
	// d9aefdd9ce902266
	// true false
}
