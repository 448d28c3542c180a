package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
)

// Elements are added, replaced and deleted; a dry run says what happens.
func TestPart(t *testing.T) {
	r := begin(t, basic(t))
	c, ctx := api.NewClient(r.socket), t.Context()
	before, _, err := c.Config(ctx)
	must(t, err)
	if _, err := new(node.Config).With("", "", nil); err == nil || !strings.HasSuffix(err.Error(), "must be one of "+strings.Join(api.Lists, ", ")) {
		t.Errorf("api has the lists %q, node says %v", api.Lists, err)
	}
	if _, err := node.Parse([]byte(`{"ports": [{"name": "x", "type": "own"}]}`)); err == nil || !strings.Contains(err.Error(), "must be "+setting.Or(api.PortTypes...)) {
		t.Errorf("api has the types of ports %q, node says %v", api.PortTypes, err)
	}
	segment, added := api.Part{List: "segments", Name: "30"}, api.Part{List: "policies", Name: "a/b c"}
	for _, x := range []struct {
		what string
		do   func(o *api.SetOptions) (api.ConfigChange, error)
		want string
	}{
		{"add", func(o *api.SetOptions) (api.ConfigChange, error) {
			return c.SetPart(ctx, segment, []byte(`{"vni": 30, "tunnel": "vx", /* as 10 */ }`), o)
		}, "add segments[vni 30]"},
		{"replace", func(o *api.SetOptions) (api.ConfigChange, error) {
			return c.SetPart(ctx, segment, []byte(`{"vni": 30, "tunnel": "vx", "ageing": "60s"}`), o)
		}, "change segments[vni 30].ageing"},
		{"name", func(o *api.SetOptions) (api.ConfigChange, error) {
			return c.SetPart(ctx, added, []byte(`{"name": "a/b c"}`), o)
		}, "add policies[a/b c]"},
		{"delete name", func(o *api.SetOptions) (api.ConfigChange, error) { return c.DeletePart(ctx, added, o) }, "del policies[a/b c]"},
		{"delete", func(o *api.SetOptions) (api.ConfigChange, error) { return c.DeletePart(ctx, segment, o) }, "del segments[vni 30]"},
	} {
		dry := check.Must(x.do(&api.SetOptions{DryRun: true}))(t)
		done := check.Must(x.do(nil))(t)
		if len(done.Differences) != 1 || done.Differences[0].Op+" "+done.Differences[0].Path != x.want || !done.Applied || dry.Applied ||
			fmt.Sprint(dry.Differences) != fmt.Sprint(done.Differences) {
			t.Errorf("%s: %+v, a dry run said %+v", x.what, done, dry)
		}
	}
	if after, _, err := c.Config(ctx); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s", err, after)
	}
	text, _, err := c.Part(ctx, api.Part{List: "tunnels", Name: "vx"})
	must(t, err)
	var x struct {
		Name  string
		DF    string
		Local string
	}
	must(t, json.Unmarshal(text, &x))
	if x.Name != "vx" || x.DF != "set" || x.Local != "127.0.0.1" {
		t.Errorf("%s", text)
	}
	if same, err := c.SetPart(ctx, api.Part{List: "tunnels", Name: "vx"}, text, nil); err != nil || len(same.Differences) > 0 {
		t.Errorf("what was read differs from what is: %+v %v", same, err)
	}
}

// When its last element is deleted, a list is as if it had never been.
func TestPartLast(t *testing.T) {
	r := begin(t, `{"control": {"socket": "SOCKET"}}`)
	c, ctx := api.NewClient(r.socket), t.Context()
	before, _, err := c.Config(ctx)
	must(t, err)
	segment := api.Part{List: "segments", Name: "30"}
	_, err = c.SetPart(ctx, segment, []byte(`{"vni": 30}`), nil)
	must(t, err)
	_, err = c.DeletePart(ctx, segment, nil)
	must(t, err)
	if after, _, err := c.Config(ctx); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s\nwant\n%s", err, after, before)
	}
}

// An element may have a name that means another folder in paths, and its path is not that of the whole configuration.
func TestPartDots(t *testing.T) {
	r := begin(t, basic(t))
	c, ctx := api.NewClient(r.socket), t.Context()
	for _, name := range []string{"..", "."} {
		p := api.Part{List: "policies", Name: name}
		done, err := c.SetPart(ctx, p, []byte(`{"name": "`+name+`"}`), nil)
		if err != nil || len(done.Differences) != 1 || done.Differences[0].Path != "policies["+name+"]" {
			t.Errorf("%q: %+v, %v", name, done, err)
		}
		if text, _, err := c.Part(ctx, p); err != nil || !strings.Contains(string(text), `"name": "`+name+`"`) {
			t.Errorf("%q: %s, %v", name, text, err)
		}
		if _, err := c.DeletePart(ctx, p, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := c.SetPart(ctx, p, []byte(`{}`), nil); err == nil || !strings.Contains(err.Error(), "name: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if list := get[[]api.Segment](r, "/v1/vni"); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// What is refused says where, and changes nothing.
func TestPartRefused(t *testing.T) {
	r := begin(t, basic(t))
	c, ctx := api.NewClient(r.socket), t.Context()
	before, _, err := c.Config(ctx)
	must(t, err)
	for _, x := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "segments/10", "{\"vni\": 10,\n \"ageing\": 5}", 422, "config:2:12: ageing: 5: must be"},
		{"PUT", "segments/10", `{"vni": 11}`, 422, `config:1:9: vni: \"11\": must be 10, as the element is called`},
		{"PUT", "segments/10", `{"vni": 10, "tunnel": "vy"}`, 422, `config:1:23: tunnel: \"vy\"`},
		{"PUT", "segments/10", ``, 422, "config:1:1: "},
		{"PUT", "segments/10?dry-run=no", `{"vni": 10}`, 400, "dry-run"},
		{"PUT", "colours/red", `{}`, 404, `must be one of tunnels, ports, policies, segments, vrfs`},
		{"GET", "colours/red", ``, 404, `must be one of tunnels, ports, policies, segments, vrfs`},
		{"GET", "segments/11", ``, 404, `segments: there is no \"11\"`},
		{"DELETE", "segments/11", ``, 404, `segments: there is no \"11\"`},
		{"DELETE", "tunnels/vx", ``, 422, `config: tunnels[vx]: is in use: segments[vni 10].tunnel`},
		{"DELETE", "vrfs/red", ``, 422, `config: vrfs[red]: is in use: segments[vni 10].gateway.vrf`},
		{"DELETE", "policies/p", ``, 422, `config: policies[p]: is in use: segments[vni 10].policy`},
		{"DELETE", "segments/10", ``, 422, `config: segments[vni 10]: is in use: vrfs[red].routes[0].via[0].segment`},
		{"PUT", "segments/ten", `{"vni": 10}`, 422, `must be a VNI, 0 to 16777215`},
		{"PUT", "segments/16777216", `{"vni": 10}`, 422, `must be a VNI, 0 to 16777215`},
		{"PUT", "ports/nope0", `{"name": "nope0", "type": "packet"}`, 422, "nope0"},
	} {
		r.gets(x.status, x.method, "/v1/config/"+x.path, x.body, x.want)
	}
	var refused *api.Error
	if _, err := c.SetPart(ctx, api.Part{List: "segments", Name: "10"}, make([]byte, 100<<20), nil); !errors.As(err, &refused) || refused.Status != 413 {
		t.Errorf("%v", err)
	}
	if after, _, err := c.Config(ctx); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s", err, after)
	}
}

// Clients that change different elements at the same time do not undo what others have done.
func TestPartRace(t *testing.T) {
	r := begin(t, basic(t))
	c := api.NewClient(r.socket)
	var all sync.WaitGroup
	const n = 12
	for i := range n {
		all.Go(func() {
			name := fmt.Sprint(1000 + i)
			for {
				_, err := c.SetPart(t.Context(), api.Part{List: "segments", Name: name}, []byte(`{"vni": `+name+`}`), nil)
				if busy := (*api.Error)(nil); errors.As(err, &busy) && busy.Status == 503 {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	all.Wait()
	segments := check.Must(c.Segments(t.Context(), nil))(t)
	if len(segments) != 2+n {
		t.Errorf("%d segments, want %d", len(segments), 2+n)
	}
}
