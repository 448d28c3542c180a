package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// FuzzRequest: whatever is asked of the control socket, it is answered: in JSON, and never with
// a failure of the node itself. An entry that was made is listed, one that was removed is not,
// and what was refused has changed nothing.
func FuzzRequest(f *testing.F) {
	const zero = "00:00:00:00:00:00"
	for _, x := range []struct{ method, path, query, body string }{
		{"GET", "/v1/fdb", "vni=10&dev=vx", ""}, {"GET", "/v1/route", "vrf=red", ""}, {"GET", "/v1/neigh", "vni=x", ""},
		{"GET", "/v1/stats", "", ""}, {"GET", "/v1/config", "", ""}, {"GET", "/v1/policy", "", ""}, {"GET", "/", "", ""}, {"PUT", "/v1/fdb", "", ""},
		{"GET", "/v1/monitor", "", ""}, {"GET", "/v1/trace", "mac=02:00:00:00:00:01&every=2", ""}, {"GET", "/v1/capture", "snaplen=0", ""},
		{"GET", "/v1/capture", "vni=10&count=3&filter=tcp%5B13%5D+%26+2+!%3D+0", ""}, {"GET", "/v1/capture", "tunnel=vx&filter=arp", ""},
		{"POST", "/v1/fdb", "", `{"op":"add","vni":10,"mac":"02:00:00:00:00:01","dst":"127.0.0.3"}`},
		{"POST", "/v1/fdb", "", `{"op":"append","vni":10,"mac":"` + zero + `","dst":"127.0.0.3"}`},
		{"POST", "/v1/fdb", "", `{"op":"del","vni":10,"mac":"` + zero + `","dst":"127.0.0.3"}`},
		{"POST", "/v1/fdb", "", `{"op":"replace","vni":10,"mac":"02:00:00:00:00:02","dev":"vx"}`},
		{"POST", "/v1/fdb", "", `{"op":"del","vni":10,"mac":"02:00:00:00:00:01"}`}, {"POST", "/v1/reload", "", ""},
		{"POST", "/v1/neigh", "", `{"op":"replace","vni":10,"ip":"10.0.10.7","mac":"02:00:00:00:00:01","dst":"127.0.0.3"}`},
		{"POST", "/v1/neigh", "", `{"op":"del","vni":10,"ip":"10.0.10.7"}`},
		{"POST", "/v1/route", "", `{"op":"append","prefix":"10.9.0.0/16","via":"10.0.10.2","weight":3,"metric":1}`},
		{"POST", "/v1/route", "", `{"op":"del","prefix":"10.9.0.0/16","metric":1}`},
		{"POST", "/v1/port", "dry-run", `{"op":"add","name":"tap1","mtu":1400,"vni":20,"vlan":5}`},
	} {
		f.Add(x.method, x.path, x.query, x.body)
	}
	s, end := fuzzServer(f)
	f.Cleanup(end)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		for i := range len(method) {
			if method[i] < 'A' || method[i] > 'Z' {
				return // net/http refuses it
			}
		}
		ask := func(method string, u *url.URL, body string) *httptest.ResponseRecorder {
			s.rate.next = time.Time{}                                                    // do not wait
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond) // streams end with their client
			defer cancel()
			w := httptest.NewRecorder()
			s.http.Handler.ServeHTTP(w, (&http.Request{
				Method: method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "node", Header: http.Header{}, Body: bodyOf(body),
			}).WithContext(ctx))
			return w
		}
		changes := []string{"/v1/fdb", "/v1/neigh", "/v1/route"}
		table := func() (all string) {
			for _, path := range changes {
				w := ask("GET", &url.URL{Path: path}, "")
				for w.Code == http.StatusServiceUnavailable { // read too often
					time.Sleep(time.Millisecond)
					w = ask("GET", &url.URL{Path: path}, "")
				}
				all += w.Body.String()
			}
			return all
		}
		change := method == "POST" && slices.Contains(changes, path)
		before := ""
		if change {
			before = table()
		}
		w := ask(method, &url.URL{Path: path, RawQuery: query}, body)
		switch {
		case w.Code >= 300 && w.Code < 400: // a path that is not clean
			return
		case w.Code == http.StatusServiceUnavailable:
		case w.Code != 200 && (w.Code < 400 || w.Code >= 500):
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		stream := path == "/v1/monitor" || path == "/v1/trace" || path == "/v1/capture"
		if (!stream || w.Code != 200) && method != "HEAD" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d: %q", w.Code, w.Body)
		}
		if !change {
			return
		}
		after := table()
		if w.Code != 200 {
			if noAge(before) != noAge(after) {
				t.Fatalf("%d: %s\nbefore %s\nafter  %s", w.Code, w.Body, before, after)
			}
			return
		}
		if path != "/v1/fdb" {
			return
		}
		c, err := decodeChange[api.FDBChange]([]byte(body))
		must(t, err)
		var es []api.FDBEntry
		must(t, json.NewDecoder(strings.NewReader(after)).Decode(&es)) // the first of the tables
		mac, there := canonical(c.MAC), false
		for _, e := range es {
			there = there || e.VNI == c.VNI && e.MAC == mac
		}
		if mac != zero && there != (c.Op != api.Del) {
			t.Fatalf("%s: %v\n%s", body, there, after)
		}
	})
}

func bodyOf(s string) *nopCloser { return &nopCloser{strings.NewReader(s)} }

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

// fuzzServer is a server of a node that runs.
func fuzzServer(f *testing.F) (*server, func()) {
	cfg, err := file.Parse([]byte(strings.ReplaceAll(`{
  "tunnels": [{"name": "vx", "local": "127.0.0.1", "port": PORT}],
  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["127.0.0.2"], "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.2"}],
    "neighbours": {"mode": "suppress", "static": [{"ip": "10.0.10.9", "mac": "02:00:00:00:00:09"}]}}, {"vni": 20}]
}`, "PORT", anyPort(f))))
	must(f, err)
	n, err := node.New(&node.Options{Owners: []string{owner}})
	must(f, err)
	ended := make(chan struct{})
	go func() { n.Run(context.Background()); close(ended) }()
	must(f, n.Apply(&cfg.Config))
	s := newServer(n, silent, func() error { return nil }, func(*file.Config) error { return nil })
	return s, func() {
		s.close()
		n.Close()
		<-ended
	}
}

// anyPort is a UDP port that nobody uses.
func anyPort(f *testing.F) string {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(f, err)
	defer c.Close()
	return netip.MustParseAddrPort(c.LocalAddr().String()).String()[len("127.0.0.1:"):]
}

// canonical is a MAC as the socket writes it.
func canonical(s string) string {
	m, err := frame.ParseMAC(s)
	if err != nil {
		return s
	}
	return m.String()
}

var ages = regexp.MustCompile(`"age":[0-9]+,?`)

func noAge(s string) string { return ages.ReplaceAllString(s, "") }
