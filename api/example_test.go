package api_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/vxswitch/vxswitch/api"
)

// A program puts a MAC behind a peer and lists the segment.
func Example() {
	ctx := context.Background()
	c := api.NewClient("") // the default socket
	err := c.ChangeFDB(ctx, api.FDBChange{Op: api.Replace, VNI: 100, MAC: "02:00:00:00:00:09", Dst: "10.0.0.2"})
	if refused := (*api.Error)(nil); errors.As(err, &refused) {
		log.Fatal("the node refused: ", refused)
	} else if err != nil {
		log.Fatal(err)
	}
	entries, err := c.FDB(ctx, api.Query{"vni": "100"})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.MAC, e.Dest, e.Origin)
	}
}

// Without a node, the error says so.
func ExampleNewClient() {
	_, err := api.NewClient("/tmp/no-such-socket").Stats(context.Background())
	fmt.Println(err, errors.Is(err, os.ErrNotExist))
	// Output: no node listens on /tmp/no-such-socket true
}
