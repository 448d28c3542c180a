package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What the client asks is what the node answers, for every request.
func TestClient(t *testing.T) {
	r := begin(t, basic(t))
	c, ctx := api.NewClient(r.socket), t.Context()
	ports := check.Must(c.Ports(ctx))(t)
	tunnels := check.Must(c.VTEPs(ctx))(t)
	if len(ports) != 2 || len(tunnels) != 1 || ports[1].Name != tunnels[0].Name {
		t.Errorf("%+v %+v", ports, tunnels)
	}
	floods := check.Must(c.Floods(ctx))(t)
	if len(floods) == 0 {
		t.Fatal("no flood lists")
	}
	vni := floods[0].VNI
	segments := check.Must(c.Segments(ctx, api.Query{"vni": fmt.Sprint(vni)}))(t)
	if len(segments) != 1 || segments[0].VNI != vni || len(segments[0].Members) != 1 || segments[0].Members[0].Port != tunnels[0].Name {
		t.Errorf("%+v", segments)
	}
	must(t, c.ChangeFDB(ctx, api.FDBChange{Op: api.Add, VNI: vni, MAC: "02:00:00:00:00:0a", Dst: "127.0.0.2"}))
	entries, err := c.FDB(ctx, api.Query{"vni": fmt.Sprint(vni)})
	must(t, err)
	if !slices.ContainsFunc(entries, func(e api.FDBEntry) bool { return e.MAC == "02:00:00:00:00:0a" && e.Proto == "vxsctl" }) {
		t.Errorf("%+v", entries)
	}
	var refused *api.Error
	if err := c.ChangeFDB(ctx, api.FDBChange{Op: api.Add, VNI: 4_000, MAC: "02:00:00:00:00:09", Dst: "10.0.0.9"}); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("%v", err)
	}
	for name, f := range map[string]func() error{
		"neigh":   func() error { _, err := c.Neighbours(ctx, api.Query{"vni": fmt.Sprint(vni)}); return err },
		"route":   func() error { _, err := c.Routes(ctx, nil); return err },
		"bfd":     func() error { _, err := c.BFD(ctx); return err },
		"waiting": func() error { _, err := c.Waiting(ctx, api.Query{"proto": "vxsctl"}); return err },
		"flows":   func() error { _, err := c.Flows(ctx); return err },
		"policy":  func() error { _, err := c.Policies(ctx); return err },
		"drops":   func() error { _, err := c.Drops(ctx); return err },
		"stats":   func() error { _, err := c.Stats(ctx); return err },
		"config":  func() error { _, _, err := c.Config(ctx); return err },
		"reload":  func() error { return c.Reload(ctx) },
	} {
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the stream has begun at some time in between
		for i := 0; watching.Err() == nil; i++ {
			c.ChangeFDB(watching, api.FDBChange{Op: api.Append, VNI: vni, MAC: "00:00:00:00:00:00", Dst: fmt.Sprintf("127.0.1.%d", i)})
		}
	}()
	for e, err := range c.Monitor(watching) {
		must(t, err)
		if e.Event == "peer-up" {
			break
		}
		if e.Event != "row-added" {
			t.Errorf("%+v", e)
		}
	}
}
