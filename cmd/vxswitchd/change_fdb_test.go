package main

import (
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// macs is the FDB of VNI 10 without the gateway.
func (r *running) macs() (list []string) {
	for _, e := range get[[]api.FDBEntry](r, "/v1/fdb?vni=10") {
		if e.Dev != "switch" {
			host, _, _ := net.SplitHostPort(e.Dest)
			list = append(list, strings.TrimPrefix(e.MAC, "02:00:00:00:00:")+" "+host+" "+e.Origin)
		}
	}
	return list
}

// Changes behave as those of bridge fdb.
func TestChanges(t *testing.T) {
	r := begin(t, basic(t))
	const zero, group = "00:00:00:00:00:00", "01:00:5e:01:01:01"
	for _, c := range []struct {
		op, mac, dst, dev string
		vni, status       int
		want              string // in the error
	}{
		{"add", "0a", "127.0.0.3", "", 10, 200, ""},
		{"add", "0a", "127.0.0.3", "", 10, 409, "use replace"},
		{"replace", "0a", "127.0.0.4", "", 10, 200, ""},
		{"add", "0c", "127.0.0.3", "", 10, 200, ""},
		{"del", "0c", "127.0.0.3", "", 10, 200, ""},
		{"add", "09", "127.0.0.3", "", 10, 409, "use replace"},
		{"replace", "09", "127.0.0.3", "", 10, 409, "is from the file: change the file"},
		{"del", "09", "", "", 10, 409, "is from the file: change the file"},
		{"del", "0b", "", "", 10, 404, "has no entry in vni 10"},
		{"add", "0b", "127.0.0.3", "", 20, 404, "dst 127.0.0.3: vni 20 has no tunnel"},
		{"add", "0b", "", "tap9", 10, 404, `dev "tap9": no such port`},
		{"add", "0b", "", "vx", 10, 409, `dev "vx": is a tunnel: use dst`},
		{"add", "0b", "127.0.0.3", "", 1 << 24, 400, "vni 16777216: must be 0 to 16777215"},
		{"add", "0b", "127.0.0.1", "", 10, 409, "dst 127.0.0.1: is this node's own address"},
		{"append", zero, "127.0.0.1", "", 10, 409, "dst 127.0.0.1: is this node's own address"},
		{"append", zero, "fd00::1", "", 10, 409, "dst fd00::1: no tunnel of vni 10 has an address of this family"},
		{"del", "0a", "127.0.0.9", "", 10, 404, "02:00:00:00:00:0a has no entry with dst 127.0.0.9 in vni 10"},
		{"del", "0a", "", "tap9", 10, 404, `02:00:00:00:00:0a has no entry with dev "tap9" in vni 10`},
		{"add", "0b", "127.0.0.3", "", 30, 404, "no such segment"},
		{"add", "0b", "127.0.0.3", "tap9", 10, 400, "takes either dst or dev"},
		{"add", "0b", "", "", 10, 400, "requires dst or dev"},
		{"add", "0b", "fd00::1", "", 10, 409, "dst fd00::1: no tunnel of vni 10 has an address of this family"},
		{"add", "0b", "224.0.0.1", "", 10, 400, "address of one host"},
		{"add", "0b", "x", "", 10, 400, "address of one host"},
		{"append", "0b", "127.0.0.3", "", 10, 400, "flood list"},
		{"set", "0b", "127.0.0.3", "", 10, 400, "must be add, append, replace or del"},
		{"append", zero, "127.0.0.3", "", 10, 200, ""},
		{"append", zero, "127.0.0.3", "", 10, 409, "already"},
		{"append", zero, "127.0.0.2", "", 10, 409, "already"},
		{"add", zero, "127.0.0.5", "", 10, 409, "use append"},
		{"replace", zero, "127.0.0.5", "", 10, 400, "use append"},
		{"del", zero, "127.0.0.2", "", 10, 409, "change the file"},
		{"del", zero, "127.0.0.7", "", 10, 404, "not in the flood list"},
		{"append", zero, "", "", 10, 400, "requires dst"},
		{"append", group, "127.0.0.3", "", 10, 200, ""},
		{"append", group, "127.0.0.3", "", 10, 409, "already"},
		{"add", group, "127.0.0.2", "", 10, 409, "use append"},
		{"append", group, "127.0.0.2", "", 10, 200, ""},
		{"del", group, "127.0.0.3", "", 10, 200, ""},
		{"del", group, "127.0.0.3", "", 10, 404, "not in the flood list"},
		{"del", group, "", "", 10, 400, "mac 01:00:5e:01:01:01: the flood list requires dst"},
	} {
		mac := c.mac
		if len(mac) == 2 {
			mac = "02:00:00:00:00:" + mac
		}
		body, _ := json.Marshal(api.FDBChange{Op: c.op, MAC: mac, Dst: c.dst, Dev: c.dev, VNI: frame.VNI(c.vni)})
		status, text := r.ask("POST", "/v1/fdb", string(body))
		var e api.Error
		json.Unmarshal([]byte(text), &e)
		if status != c.status || !strings.Contains(e.Text, c.want) || (status != 200) != (e.Text != "") || strings.Contains(e.Text, "\n") {
			t.Errorf("%s: %d %s, want %d %q", body, status, text, c.status, c.want)
		}
	}
	for body, want := range map[string]string{
		"": "body: empty; must be an object with op", "{": "body:1:2: unexpected end of the file", "[]": "body:1:1: a list: must be an object",
		`{"op":"add","vni":1,"colour":1}`: "colour: unknown key; allowed are dev, dst, mac, op, tunnel, vni",
		`{"op":"add","vni":1}{}`:          "body:1:21: ", `{"op":"add","vni":10,"mac":"02:00:00:00:00:0c","dst":"127.0.0.3"}]`: "body:1:66: ", `{"op":"add"}`: "vni: required",
		`{"op":5,"vni":"10"}`:                           `op: 5: must be a string; vni: \"10\": must be a number`,
		`{"op":"add","vni":-1}`:                         "vni: -1: must be 0 to 16777215",
		`{"op":"add","vni":1.5}`:                        "vni: 1.5: must be 0 to 16777215",
		`{"op":"a","op":"b","vni":1}`:                   "op: duplicate key",
		`{"op":"` + strings.Repeat("x", maxBody) + `"}`: "larger than 65536 bytes",
	} {
		if status, text := r.ask("POST", "/v1/fdb", body); status != 400 && (len(body) < maxBody || status != 413) || !strings.Contains(text, want) {
			t.Errorf("%.40q: %d %s", body, status, text)
		}
	}
	for query, want := range map[string]string{
		"vni=10&vni=20": "/v1/fdb: vni: duplicate parameter", "vni=%zz": "/v1/fdb: query: invalid URL escape", "colour=red": `/v1/fdb: unknown parameter \"colour\"; must be one of vni, dev`,
	} {
		r.gets(400, "GET", "/v1/fdb?"+query, "", want)
	}
	want := []string{"09 127.0.0.2 static", "0a 127.0.0.4 control"}
	if got := r.macs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	flood := func(want int) {
		t.Helper()
		if f := get[[]api.Flood](r, "/v1/flood"); len(f) != 1 || len(f[0].Peers) != want || len(f[0].Members) != want+1 || f[0].Members[want].MAC != group {
			t.Errorf("%+v, want %d peers and one of the group", f, want)
		}
	}
	flood(2)

	// They outlast a reload.
	text, _ := os.ReadFile(r.file)
	r.write(strings.Replace(string(text), `{"vni": 20}`, `{"vni": 20}, {"vni": 30}`, 1))
	r.gets(200, "POST", "/v1/reload", "")
	if got := r.macs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	flood(2)
	r.ask("POST", "/v1/fdb", `{"op":"del","vni":10,"mac":"02:00:00:00:00:0a"}`)
	r.ask("POST", "/v1/fdb", `{"op":"del","vni":10,"mac":"00:00:00:00:00:00","dst":"127.0.0.3"}`)
	if got := r.macs(); !slices.Equal(got, want[:1]) {
		t.Errorf("%q, want %q", got, want[:1])
	}
	flood(1)
}
