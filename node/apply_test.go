package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/setting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(carry.Suite{M: m}) }

// running starts a node, which ends with the test.
func running(t *testing.T, o ...*Options) *Node {
	t.Helper()
	n, err := New(append(o, nil)[0])
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) { // so where Close came first
			t.Errorf("Run: %v", err)
		}
	})
	begun(t, n)
	return n
}

// begun waits until a node runs: Run waits for a change that has come before it.
func begun(t *testing.T, n *Node) {
	t.Helper()
	fake.Until(t, "the node runs", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ending != nil
	})
}

// ofPort replaces 14789, the port of tunnels on loopback, by one of this process: another may run the same tests.
func ofPort(text string) string {
	return strings.ReplaceAll(text, "14789", strconv.Itoa(14789+os.Getpid()%10_000))
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text))
	must(t, err)
	return c
}

// changed returns a copy of a configuration with one thing changed.
func changed(t *testing.T, c *Config, change func(c *Config)) *Config {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	c = parse(t, string(text))
	change(c)
	return c
}

// dump is what is in a node's tables, a line each.
func dump(n *Node) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, v := range n.Switch().VSIs() {
		add("segment %d", v.VNI())
		for e := range v.FDB().All() {
			add("fdb %d %v %s %v", v.VNI(), e.MAC, n.Switch().Name(e.Dest), e.Origin)
		}
		for _, a := range v.Attachments() {
			add("member %d %s tag %d", v.VNI(), n.Switch().Name(a.Dest(0)), a.Tag())
		}
		if r := n.Neighbours(v.VNI()); r != nil {
			for e := range r.Table().All() {
				add("neigh %d %v %v %v", v.VNI(), e.IP, e.MAC, e.Origin)
			}
		}
		for name, t := range n.Tunnels() {
			if f := t.Flood(v.VNI()); len(f) > 0 {
				add("flood %s %d %v", name, v.VNI(), f)
			}
		}
	}
	for _, i := range n.Interfaces() {
		add("gateway %d %v", i.VNI(), i.MAC())
	}
	for _, vrf := range n.Gateway().VRFs() {
		for _, r := range vrf.Routes() {
			add("route %s %v via %v", vrf.Name(), r.Prefix, r.Via)
		}
	}
	slices.Sort(list)
	return list
}

func wantDump(t *testing.T, n *Node, want string) {
	t.Helper()
	got := strings.Join(dump(n), "\n")
	if want = strings.ReplaceAll(strings.TrimSpace(want), "\t", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var first = ofPort(`{
  "tunnels": [{"name": "vx", "local": "127.0.0.1", "port": 14789}],
  "segments": [
    {"vni": 10, "tunnel": "vx", "flood": ["127.0.0.2", "127.0.0.3"],
     "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.2"}],
     "neighbours": {"mode": "suppress", "static": [{"ip": "10.0.10.9", "mac": "02:00:00:00:00:09"}]},
     "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:ff:10"}},
    {"vni": 20, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:20"}},
    {"vni": 5000, "tunnel": "vx", "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:50"}}
  ],
  "vrfs": [{"name": "red", "routes": [
    {"prefix": "10.1.0.0/16", "via": [{"segment": 10, "ip": "10.0.10.9"}, {"segment": 5000, "mac": "02:00:00:00:dd:02", "remote": "127.0.0.2"}]},
    {"prefix": "10.2.0.0/16"}
  ]}]
}`)

var firstDump = ofPort(`
fdb 10 02:00:00:00:00:09 127.0.0.2:14789 static
fdb 10 02:00:00:00:ff:10 switch static
fdb 20 02:00:00:00:ff:20 switch static
fdb 5000 02:00:00:00:dd:02 127.0.0.2:14789 static
fdb 5000 02:00:00:00:ff:50 switch static
flood vx 10 [127.0.0.2:14789 127.0.0.3:14789]
gateway 10 02:00:00:00:ff:10
gateway 20 02:00:00:00:ff:20
gateway 5000 02:00:00:00:ff:50
member 10 vx tag 10
member 5000 vx tag 5000
neigh 10 10.0.10.9 02:00:00:00:00:09 static
route red 10.1.0.0/16 via [vni 10 via 10.0.10.9 vni 5000 mac 02:00:00:00:dd:02]
route red 10.2.0.0/16 via []
segment 10
segment 20
segment 5000`)

// A configuration becomes tables; another one changes what differs, and only that; an empty
// one leaves nothing.
func TestApply(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, first)))
	wantDump(t, n, firstDump)
	vsi, _ := n.Switch().VSI(10, nil)
	learned := frame.MAC{2, 0, 0, 0, 0, 0x77}
	vsi.FDB().Learn(learned, vsi.Attachments()[0].Dest(1), n.Switch().Tick())
	tunnel := n.Tunnels()["vx"]

	// The same again, and with changes in other segments, leaves segment 10 alone.
	for _, text := range []string{first, strings.Replace(first, `"10.0.20.1/24"`, `"10.0.21.1/24"`, 1)} {
		must(t, n.Apply(parse(t, text)))
		if _, ok := vsi.FDB().Lookup(learned); !ok || n.Tunnels()["vx"] != tunnel {
			t.Fatal("what has not changed was made anew")
		}
	}
	vsi.FDB().Delete(learned)
	must(t, n.Apply(parse(t, first)))
	wantDump(t, n, firstDump)

	// A tunnel with other settings is another tunnel, with the same rows.
	must(t, n.Apply(parse(t, strings.Replace(first, `"local": "127.0.0.1", `, `"local": "127.0.0.1", "ttl": 7, `, 1))))
	if n.Tunnels()["vx"] == tunnel {
		t.Error("the tunnel has its old settings")
	}
	wantDump(t, n, firstDump)

	must(t, n.Apply(new(Config)))
	wantDump(t, n, "")
	if len(n.Tunnels()) != 0 {
		t.Error("the tunnel is left")
	}
}

// What cannot be had leaves everything as it was.
func TestApplyFails(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, first)))
	for _, c := range []struct{ name, text, want string }{
		{"an address that is not local", strings.ReplaceAll(first, "127.0.0.", "192.0.2."), `tunnel "vx": `},
		{"another tunnel's port", strings.Replace(first, `"tunnels": [`, `"tunnels": [{"name": "other", "local": "192.0.2.77"},`, 1), `tunnel "other": `},
		{"a device that is not there", strings.Replace(first, `"segments": [`, `"ports": [{"name": "nope0", "type": "packet"}], "segments": [`, 1), `port "nope0": `},
	} {
		err := n.Apply(parse(t, c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something about %s", c.name, err, c.want)
		}
		wantDump(t, n, firstDump)
	}
	// What is new is opened before anything goes: a segment that was to go has not been touched.
	vsi, _ := n.Switch().VSI(20, nil)
	less := strings.Replace(strings.Replace(first, `{"vni": 20, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:20"}},`, "", 1),
		`"segments": [`, `"ports": [{"name": "nope0", "type": "packet"}], "segments": [`, 1)
	if err := n.Apply(parse(t, less)); err == nil {
		t.Error("a device that is not there was opened")
	}
	if again, _ := n.Switch().VSI(20, nil); again != vsi {
		t.Error("segment 20 was made anew")
	}
	wantDump(t, n, firstDump)

	bad := parse(t, first)
	bad.Segments[0].Flood[0] = bad.Tunnels[0].Local
	var errs setting.Errors
	if err := n.Apply(bad); !errors.As(err, &errs) || len(errs) != 1 || errs[0].Path != "segments[0].flood[0]" || errs[0].Line != 0 {
		t.Errorf("%v", err)
	}
	wantDump(t, n, firstDump)
	if err := n.Apply(nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("no configuration: %v", err)
	}
	n.Close()
	if err := n.Apply(parse(t, first)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// What the settings of a segment are refused for is found before anything is changed: its
// gateway is not another one already.
func TestApplyRefusesSegment(t *testing.T) {
	n := running(t)
	cfg := parse(t, first)
	must(t, n.Apply(cfg))
	bad := parse(t, strings.Replace(first, "02:00:00:00:ff:10", "02:00:00:00:ff:11", 1))
	bad.Segments[0].Ageing = 613200 * time.Hour
	for range 2 {
		if err := n.Apply(bad); err == nil {
			t.Fatal("an ageing time of 70 years is taken")
		}
		wantDump(t, n, firstDump)
		must(t, n.Apply(cfg))
		wantDump(t, n, firstDump)
	}
}

// The end that was asked for is no error; to run once more is one, and changes nothing.
func TestRunEnds(t *testing.T) {
	for name, end := range map[string]func(n *Node, cancel func()){
		"context": func(_ *Node, cancel func()) { cancel() },
		"Close":   func(n *Node, _ func()) { n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			n, err := New(nil)
			must(t, err)
			defer n.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- n.Run(ctx) }()
			must(t, n.Apply(parse(t, `{"segments": [{"vni": 1}]}`)))
			other := make(chan error, 2)
			go func() { other <- n.Run(ctx) }()
			// Of two, whichever came second is refused, and the first runs on.
			var second error
			select {
			case second = <-other:
			case second = <-done:
				done = other
			}
			if second == nil || errors.Is(second, net.ErrClosed) {
				t.Errorf("a second Run: %v", second)
			}
			if err := n.Apply(parse(t, `{"segments": [{"vni": 2}]}`)); err != nil {
				t.Errorf("after a second Run: %v", err)
			}
			end(n, cancel)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := n.Apply(parse(t, `{}`)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Apply after the end: %v", err)
			}
			if err := n.Run(ctx); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Run after the end: %v", err)
			}
		})
	}
}
