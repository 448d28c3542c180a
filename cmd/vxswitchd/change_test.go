package main

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// In a segment with a tunnel for each family, the address of a peer says which one it is of. With two of a family, a name does.
func TestChangePicksTunnel(t *testing.T) {
	r := begin(t, fmt.Sprintf(`{
  "tunnels": [{"name": "four", "local": "127.0.0.1", "port": %d}, {"name": "six", "local": "::1", "port": %d}, {"name": "other", "local": "127.0.0.2", "port": %d}],
  "segments": [
    {"vni": 10, "tunnels": [{"tunnel": "four"}, {"tunnel": "six"}]},
    {"vni": 20, "tunnels": [{"tunnel": "four"}, {"tunnel": "other"}]}
  ],
  "control": {"socket": "SOCKET"}
}`, freePort(t), freePort(t), freePort(t)))
	c, ctx := api.NewClient(r.socket), t.Context()
	zero := "00:00:00:00:00:00"
	for _, x := range []struct {
		change api.FDBChange
		want   string // in an error
	}{
		{api.FDBChange{Op: api.Append, VNI: 10, MAC: zero, Dst: "127.0.0.9"}, ""},
		{api.FDBChange{Op: api.Append, VNI: 10, MAC: zero, Dst: "127.0.0.9"}, "already in the flood list"},
		{api.FDBChange{Op: api.Add, VNI: 10, MAC: "02:00:00:00:00:04", Dst: "127.0.0.9"}, ""},
		{api.FDBChange{Op: api.Add, VNI: 10, MAC: "02:00:00:00:00:04", Dst: "127.0.0.9", Tunnel: "other"}, `tunnel "other": vni 10 has no such tunnel`},
		{api.FDBChange{Op: api.Append, VNI: 20, MAC: zero, Dst: "127.0.0.9"}, "several tunnels for this family; tunnel must be one of four, other"},
		{api.FDBChange{Op: api.Append, VNI: 20, MAC: zero, Dst: "2001:db8::9"}, "no tunnel of vni 20 has an address of this family"},
		{api.FDBChange{Op: api.Append, VNI: 10, MAC: zero, Dst: "2001:db8::9", Tunnel: "four"}, `dst 2001:db8::9: tunnel "four" has no address of this family`},
		{api.FDBChange{Op: api.Append, VNI: 10, MAC: zero, Dst: "fe80::9"}, "dst fe80::9: a link-local address needs a zone"},
		{api.FDBChange{Op: api.Append, VNI: 20, MAC: zero, Dst: "127.0.0.9", Tunnel: "other"}, ""},
		{api.FDBChange{Op: api.Append, VNI: 20, MAC: zero, Dst: "127.0.0.9", Tunnel: "four"}, ""},
		{api.FDBChange{Op: api.Del, VNI: 20, MAC: zero, Dst: "127.0.0.9", Tunnel: "four"}, ""},
		{api.FDBChange{Op: api.Add, VNI: 20, MAC: "02:00:00:00:00:05", Dst: "127.0.0.9", Tunnel: "other"}, ""},
		{api.FDBChange{Op: api.Del, VNI: 10, MAC: "02:00:00:00:00:04", Tunnel: "four"}, "tunnel: requires dst"},
		{api.FDBChange{Op: api.Del, VNI: 10, MAC: "02:00:00:00:00:04"}, ""},
	} {
		err := c.ChangeFDB(ctx, x.change)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v, want %q", x.change, err, x.want)
		}
	}
	floods := check.Must(c.Floods(ctx))(t)
	var got []string
	for _, f := range floods {
		for _, p := range f.Peers {
			got = append(got, fmt.Sprintf("%d %s %s", f.VNI, f.Tunnel, p[:strings.LastIndex(p, ":")]))
		}
	}
	slices.Sort(got)
	if want := []string{"10 four 127.0.0.9", "20 other 127.0.0.9"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	entries := check.Must(c.FDB(ctx, nil))(t)
	if len(entries) != 1 || entries[0].Dev != "other" || entries[0].VLAN != 0 {
		t.Errorf("%+v", entries)
	}
}

// What was added while a segment had one tunnel is found when it has another.
func TestChangeWithSecondTunnel(t *testing.T) {
	r := begin(t, fmt.Sprintf(`{
  "tunnels": [{"name": "four", "local": "127.0.0.1", "port": %d}, {"name": "six", "local": "::1", "port": %d}],
  "segments": [{"vni": 10, "tunnels": [{"tunnel": "four"}], "neighbours": {}, "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:10"}}], "vrfs": [{"name": "red"}],
  "control": {"socket": "SOCKET"}
}`, freePort(t), freePort(t)))
	c, ctx, vni := api.NewClient(r.socket), t.Context(), frame.VNI(10)
	flood := api.FDBChange{Op: api.Append, VNI: 10, MAC: "00:00:00:00:00:00", Dst: "127.0.0.9"}
	entry := api.FDBChange{Op: api.Add, VNI: 10, MAC: "02:00:00:00:00:04", Dst: "127.0.0.9"}
	neigh := api.NeighbourChange{Op: api.Add, VNI: 10, IP: "10.0.10.4", MAC: "02:00:00:00:00:04", Dst: "127.0.0.9"}
	route := api.RouteChange{Op: api.Add, Prefix: "10.9.0.0/16", VNI: &vni, MAC: "02:00:00:00:00:04", Dst: "127.0.0.9"}
	must(t, c.ChangeFDB(ctx, flood))
	must(t, c.ChangeFDB(ctx, entry))
	must(t, c.ChangeRoute(ctx, route))
	segment, _, err := c.Part(ctx, api.Part{List: "segments", Name: "10"})
	must(t, err)
	both := strings.Replace(string(segment), `"tunnel": "four"`, `"tunnel": "four"}, {"tunnel": "six"`, 1)
	if _, err := c.SetPart(ctx, api.Part{List: "segments", Name: "10"}, []byte(both), nil); err != nil {
		t.Fatalf("%v\n%s", err, both)
	}
	if err := c.ChangeFDB(ctx, flood); err == nil || !strings.Contains(err.Error(), "already in the flood list") {
		t.Errorf("flood list: %v", err)
	}
	if route.Op = api.Append; c.ChangeRoute(ctx, route) == nil {
		t.Error("the route has its next hop twice")
	}
	if err := c.ChangeNeighbour(ctx, neigh); err != nil {
		t.Errorf("neighbour: %v", err)
	}
	neigh = api.NeighbourChange{Op: api.Del, VNI: 10, IP: neigh.IP}
	must(t, c.ChangeNeighbour(ctx, neigh))
	flood.Op, route.Op, entry.Op = api.Del, api.Del, api.Del
	for what, err := range map[string]error{"flood list": c.ChangeFDB(ctx, flood), "route": c.ChangeRoute(ctx, route), "entry": c.ChangeFDB(ctx, entry)} {
		if err != nil {
			t.Errorf("del, %s: %v", what, err)
		}
	}
}

// A learned entry is deleted only where the change says it is.
func TestDeleteLearned(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	segment := check.Must(n.Segment(10, nil))(t)
	must(t, segment.Add(port.NewPipe(&port.PipeConfig{Name: "here"}), nil))
	s := newServer(n, silent, nil, nil)
	defer s.close()
	vsi := check.Must(segment.Switch())(t)
	mac := frame.MAC{2, 0, 0, 0, 0, 7}
	vsi.FDB().Learn(mac, vsi.Attachments()[0].Dest(0), 0)
	for _, x := range []struct {
		where  string
		status int
	}{{`"dev":"there"`, 404}, {`"dst":"127.0.0.9"`, 404}, {`"dev":"here"`, 200}} {
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest("POST", "/v1/fdb", strings.NewReader(`{"op":"del","vni":10,"mac":"02:00:00:00:00:07",`+x.where+`}`)))
		if _, there := vsi.FDB().Get(mac); w.Code != x.status || there != (x.status != 200) {
			t.Errorf("%s: %d %s, there %v", x.where, w.Code, w.Body, there)
		}
	}
}
