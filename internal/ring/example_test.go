package ring_test

import (
	"context"
	"fmt"

	"github.com/vxswitch/vxswitch/internal/ring"
)

func ExampleRing() {
	r := ring.New[string](2)
	for _, p := range []string{"one", "two", "three"} {
		fmt.Println(r.Put("to h1", []byte(p)))
	}
	packet, to, err := r.Take(context.Background())
	fmt.Printf("%s %s %v\n", packet, to, err)
	// Output:
	// none
	// none
	// port-full
	// one to h1 <nil>
}
