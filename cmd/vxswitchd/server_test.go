package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A file that is wrong changes nothing, and every error has its place.
func TestReload(t *testing.T) {
	r := begin(t, basic(t))
	good, _ := os.ReadFile(r.file)
	r.write(strings.Replace(strings.Replace(string(good), `"vni": 20`, `"vni": 10`, 1), `"red", "addresses"`, `"blue", "addresses"`, 1))
	status, text := r.ask("POST", "/v1/reload", "")
	var e api.Error
	json.Unmarshal([]byte(text), &e)
	want := []string{r.file + `:6:25: segments[0].gateway.vrf: "blue": must be the name of a VRF`, r.file + `:7:13: segments[1].vni: 10: duplicate`}
	ok := slices.ContainsFunc(e.Lines, func(l string) bool { return l == want[0] }) && slices.Contains(e.Lines, want[1])
	if status != 422 || !ok {
		t.Errorf("%d %q, want %q", status, e.Lines, want)
	}
	r.write(strings.ReplaceAll(string(good), "127.0.0.", "192.0.2."))
	r.gets(422, "POST", "/v1/reload", "", `must be an address of this host`)
	if got := r.macs(); !slices.Equal(got, []string{"09 127.0.0.2 static"}) {
		t.Errorf("%q", got)
	}
	r.write(strings.Replace(string(good), "SOCKET", r.socket, 1))
	if status, text := r.ask("POST", "/v1/reload", ""); status != 200 || strings.Count(r.out.String(), "reloaded\n") != 1 {
		t.Errorf("%d %s", status, text)
	}
}

func TestWrongRequests(t *testing.T) {
	r := begin(t, basic(t))
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/nope", 404, "must be one of /v1/bfd, /v1/bgp, /v1/bgp/peers, /v1/bgp/routes, /v1/calico, /v1/capture, /v1/config"},
		{"DELETE", "/v1/fdb", 405, "must be one of GET, POST"},
		{"GET", "/v1/reload", 405, "must be one of POST"},
		{"POST", "/v1/config/ports/tap0", 405, "must be one of GET, PUT, DELETE"},
		{"POST", "/v1/config/policies/a%2Fb", 405, "must be one of GET, PUT, DELETE"},
		{"GET", "/v1/fdb?colour=red", 400, "must be one of vni, dev"},
		{"GET", "/v1/fdb?vni=16777216", 400, "must be 0 to 16777215"},
		{"GET", "/v1/drops?x=1", 400, "unknown parameter"},
		{"GET", "/v1/monitor?x=1", 400, "unknown parameter"},
		{"POST", "/v1/reload?dry-run", 400, "unknown parameter"},
		{"GET", "/v1/fdb?vni=10;dev=vx", 400, "invalid semicolon"},
		{"GET", "/v1/fdb?vni=5", 404, "no such segment"},
		{"GET", "/v1/fdb?dev=nope", 404, "no such port or tunnel"},
		{"GET", "/v1/neigh?vni=5", 404, "no such segment"},
		{"GET", "/v1/route?vrf=blue", 404, "no such VRF"},
		{"GET", "/v1/trace?vni=999", 404, "no such segment"},
		{"GET", "/v1/trace?every=0", 400, "must be 1 or more"},
		{"GET", "/v1/trace?mac=x", 400, "must be a MAC"},
		{"GET", "/v1/trace?dest=tap9", 404, "no such port, tunnel or peer"},
		{"GET", "/v1/trace?dest=127.0.0.9", 404, "no such port, tunnel or peer"},
		{"GET", "/v1/capture?port=tap9", 404, `port \"tap9\": there is none`},
		{"GET", "/v1/capture?tunnel=tap9", 404, `tunnel \"tap9\": must be one of vx`},
		{"GET", "/v1/capture?vni=999", 404, "no such segment"},
		{"GET", "/v1/capture?vni=x", 400, "must be 0 to 16777215"},
		{"GET", "/v1/capture?vni=10&tunnel=vx", 400, "only one of port, tunnel and vni may be given"},
		{"GET", "/v1/capture?snaplen=0", 400, `snaplen \"0\": must be 1 to 262144`},
		{"GET", "/v1/capture?count=x", 400, `count \"x\": must be 1 to 2147483647`},
		{"GET", "/v1/capture?filter=tcp+prot+80", 400, `filter, column 5: \"prot\": must be \"and\" or \"or\"`},
		{"GET", "/v1/capture?tunnel=vx&filter=vlan+5", 400, `is for Ethernet, and these packets begin with IP`},
		{"GET", "/v1/capture?tunnel=vx&filter=arp", 400, `rejects all packets: they begin with raw IP`},
		{"GET", "/v1/capture?filter=" + strings.Repeat("x", 2049), 400, `filter of 2049 bytes: must have at most 2048`},
	} {
		r.gets(c.status, c.method, c.path, "", c.want)
	}
}

// Events arrive, one reader has a trace or a capture, and the end ends all of them.
func TestStreams(t *testing.T) {
	r := begin(t, basic(t))
	monitor := r.open("/v1/monitor")
	r.open("/v1/trace?dest=127.0.0.2")
	capture := r.open("/v1/capture")
	for path, want := range map[string]string{"/v1/trace": "end it first", "/v1/capture": "too many captures are running: end one"} {
		r.gets(409, "GET", path, "", want)
	}
	// A duplicate neighbour or a port that comes is an event: here a tunnel made anew.
	text, _ := os.ReadFile(r.file)
	r.write(strings.Replace(string(text), `"name": "vx"`, `"name": "vx", "ttl": 9`, 1))
	r.gets(200, "POST", "/v1/reload", "")
	lines := bufio.NewScanner(monitor.Body)
	next := func() (e api.Event, ok bool) { // those of peers left out
		for lines.Scan() {
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Event != "peer-up" {
				return e, err == nil
			}
			e = api.Event{}
		}
		return e, false
	}
	for _, want := range []string{"detached", "port-down", "port-up", "attached"} {
		if e, ok := next(); !ok || e.Event != want || e.Dest != "vx" || time.Since(e.Time) > time.Minute {
			t.Errorf("%s, want %s", lines.Text(), want)
		}
	}
	capture.Body.Close()
	fake.Until(t, "the capture to be over", func() bool {
		again := r.open("/v1/capture")
		return again.StatusCode == 200
	})
	begun := time.Now()
	if code := r.stop(); code != 0 || time.Since(begun) > 3*time.Second {
		t.Errorf("status %d after %v: %s", code, time.Since(begun), r.errs.String())
	}
	if _, ok := next(); ok {
		t.Errorf("%s", lines.Text())
	}
}

// A client that reads nothing of a table is disconnected after 5 s, as one of a stream is, and does not keep its place.
func TestStalledTable(t *testing.T) {
	t.Parallel()
	var entries []string
	for i := range 8000 {
		entries = append(entries, fmt.Sprintf(`{"mac": "02:00:00:01:%02x:%02x", "remote": "127.0.0.2"}`, i>>8, i&255))
	}
	r := begin(t, strings.Replace(basic(t), `"fdb": [`, `"fdb": [`+strings.Join(entries, ", ")+", ", 1))
	c, err := net.Dial("unix", r.socket)
	must(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET /v1/stats HTTP/1.1\r\nHost: node\r\n\r\n")
	in := bufio.NewReader(c)
	_, err = in.Peek(1) // the node has begun
	must(t, err)
	time.Sleep(stalled + stalled/2)
	resp, err := http.ReadResponse(in, nil)
	must(t, err)
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("all of %d bytes came", len(text))
	}
}

// Clients that stall or flood are bounded, and others get their answers.
func TestManyClients(t *testing.T) {
	r := begin(t, basic(t))
	for range maxStreams / 4 { // what one process may have
		if resp := r.open("/v1/monitor"); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	r.gets(503, "GET", "/v1/monitor", "", "end one")
	r.gets(200, "GET", "/v1/fdb", "")
	var idle []net.Conn
	turned := 0
	for range maxConns/4 + 5 {
		c, err := net.Dial("unix", r.socket)
		must(t, err)
		defer c.Close()
		io.WriteString(c, "GET /v1/fdb HTT") // and no more
		idle = append(idle, c)
	}
	for _, c := range idle {
		c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode == 503 {
			turned++
		}
		if turned == 5 {
			break
		}
	}
	if turned < 5 {
		t.Errorf("%d connections were turned away", turned)
	}
	// Those that say nothing are gone after a while, and there is room again.
	time.Sleep(stalled)
	fake.Until(t, "room", func() bool { status, _ := r.ask("GET", "/v1/flood", ""); return status == 200 })

	begun := time.Now()
	const requests = maxBurst + 40
	for range requests {
		r.ask("GET", "/v1/flood", "")
	}
	if took := time.Since(begun); took < 30*perRequest {
		t.Errorf("%d requests in %v", requests, took)
	}
}
