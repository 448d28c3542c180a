package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// The tables say in which VLAN a port is, in each of its segments, and whether that is one of service tags.
func TestVLANsInTables(t *testing.T) {
	n := check.Must(node.New(nil))(t)
	defer n.Close()
	p := port.NewPipe(&port.PipeConfig{Name: "p"})
	for i, m := range []node.Member{{}, {VLAN: 5}, {VLAN: 5, Service: true}, {VLAN: 4094, Service: true}} {
		v := check.Must(n.Segment(frame.VNI(i), nil))(t)
		must(t, v.Add(p, &m))
		vsi := n.Segments()[i]
		must(t, vsi.FDB().Set(frame.MAC{2, 0, 0, 0, 0, 1}, vsi.Attachments()[0].Dest(0), fdb.Static))
	}
	var got []string
	for e := range entries(n, n.Segments(), "") {
		got = append(got, fmt.Sprint(e.VNI, " ", e.VLAN, " ", e.Service))
	}
	for s := range tallied(n, n.Segments()) {
		got = append(got, fmt.Sprint(s.VNI, " ", s.Members[0].VLAN, " ", s.Members[0].Service))
	}
	once := []string{"0 0 false", "1 5 false", "2 5 true", "3 4094 true"}
	if want := append(once, once...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := memberOf(7, frame.ServiceTag|5); m.VNI != 7 || m.Tag != 5 || !m.Service {
		t.Errorf("%+v", m)
	}
}

// Members of one port in one segment are told apart by their names; that of the port stands for one alone, or shows all.
func TestMembersInTables(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	s := newServer(n, silent, nil, nil)
	defer s.close()
	ask := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	v := check.Must(n.Segment(30, nil))(t)
	p := port.NewPipe(&port.PipeConfig{Name: "p"})
	for _, m := range []node.Member{{VLAN: 5}, {VLAN: 6}, {VLAN: 6, Service: true}, {}} {
		must(t, v.Add(p, &m))
	}
	for i, dev := range []string{"p.5", "p.6", "p.s6", "p.0"} {
		if status, text := ask("POST", "/v1/fdb", fmt.Sprintf(`{"op": "add", "vni": 30, "mac": "02:00:00:00:01:%02x", "dev": %q}`, i, dev)); status != 200 {
			t.Errorf("%s: %d %s", dev, status, text)
		}
	}
	for dev, want := range map[string]string{
		"p": `dev "p": must be one of its members in vni 30, by the tag: p.5, p.6, p.s6, p.0`, "p.7": `dev "p.7": no such port in vni 30`,
	} {
		if status, text := ask("POST", "/v1/fdb", fmt.Sprintf(`{"op": "add", "vni": 30, "mac": "02:00:00:00:01:ff", "dev": %q}`, dev)); status == 200 || !strings.Contains(text, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d %s, want %s", dev, status, text, want)
		}
	}
	for query, want := range map[string]string{"dev=p": "5 6 6s 0", "dev=p.6": "6", "dev=p.s6": "6s", "dev=p.5": "5", "dev=p.0": "0"} {
		var got []string
		_, text := ask("GET", "/v1/fdb?vni=30&"+query, "")
		var list []api.FDBEntry
		must(t, json.Unmarshal([]byte(text), &list))
		for _, e := range list {
			tag := fmt.Sprint(e.VLAN, map[bool]string{true: "s"}[e.Service])
			got = append(got, tag)
			if name := map[string]string{"5": "p.5", "6": "p.6", "6s": "p.s6", "0": "p.0"}[tag]; e.Dev != name || e.Dest != name {
				t.Errorf("%s: dev %q, dest %q, want %q", tag, e.Dev, e.Dest, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, x := range []struct {
		dev    string
		status int
	}{{"p.6", 404}, {"p.5", 200}} { // what a table says is what a change takes
		if status, text := ask("POST", "/v1/fdb", fmt.Sprintf(`{"op": "del", "vni": 30, "mac": "02:00:00:00:01:00", "dev": %q}`, x.dev)); status != x.status {
			t.Errorf("%s: %d %s", x.dev, status, text)
		}
	}
	if status, text := ask("GET", "/v1/fdb?dev=p.7", ""); status != 404 {
		t.Errorf("%d %s", status, text)
	}
}
