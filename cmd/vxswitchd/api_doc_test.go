package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A request is one that the documentation of package api has.
type request struct {
	method, path string
	params       []string
	rest         string // what is sent and what is answered, in words
}

var (
	requestLine = regexp.MustCompile(`(?m)^//\t(GET|PUT|POST|DELETE) +(.*(?:\n//\t {20,}.*)?)$`)
	pathOf      = regexp.MustCompile(`^(/v1/[\w/]+)(?:\?(\S*))?,?\s*`)
)

// documented returns the requests of the list in api/doc.go.
func documented(t *testing.T) (list []request) {
	t.Helper()
	text, err := os.ReadFile("../../api/doc.go")
	must(t, err)
	for _, m := range requestLine.FindAllStringSubmatch(string(text), -1) {
		rest, group := strings.ReplaceAll(m[2], "\n//\t", " "), []request{}
		for p := pathOf.FindStringSubmatch(rest); p != nil; p = pathOf.FindStringSubmatch(rest) {
			x := request{method: m[1], path: p[1]}
			for _, name := range strings.Split(p[2], "&") {
				if name = strings.TrimSuffix(name, "="); name != "" {
					x.params = append(x.params, name)
				}
			}
			group, rest = append(group, x), rest[len(p[0]):]
		}
		answers := strings.Split(rest, ", ")
		for i, x := range group {
			if x.rest = rest; len(group) > 1 {
				x.rest = answers[i]
			}
			list = append(list, x)
		}
	}
	return list
}

// TestDocumentedRequests sends each request of the documentation, with each of its parameters, and reads the answer as the type that
// it names. What is documented the node has, and what it has is documented.
func TestDocumentedRequests(t *testing.T) {
	answers := map[string]func() any{
		"[FDBEntry ...]": func() any { return new([]api.FDBEntry) }, "[Neighbour ...]": func() any { return new([]api.Neighbour) },
		"[Route ...]": func() any { return new([]api.Route) }, "[VTEP ...]": func() any { return new([]api.VTEP) },
		"[Port ...]": func() any { return new([]api.Port) }, "[Flood ...]": func() any { return new([]api.Flood) },
		"[Segment ...]": func() any { return new([]api.Segment) }, "[BFD ...]": func() any { return new([]api.BFD) },
		"[Row ...]": func() any { return new([]api.Row) }, "[Policy ...]": func() any { return new([]api.Policy) },
		"[Drop ...]": func() any { return new([]api.Drop) }, "Stats": func() any { return new(api.Stats) },
		"Done": func() any { return new(api.Done) }, "ConfigChange": func() any { return new(api.ConfigChange) },
		"an Event for each event, a line each": nil, "a TraceRecord for each frame, a line each": nil,
		"pcapng, until the client disconnects or ends its half of the connection": nil,
		"the configuration as a file, with defaults":                              func() any { return new(map[string]any) },
		"one of the tunnels, ports, policies, segments (by VNI) or vrfs":          func() any { return new(map[string]any) },
	}
	values := map[string]string{"vni": "10", "dev": "vx", "vrf": "red", "proto": "config", "dry-run": "true", "every": "2", "mac": "02:00:00:00:00:09",
		"dest": "vx", "port": "switch", "tunnel": "vx", "snaplen": "100", "count": "1", "filter": "tcp"}
	bodies := map[string]any{
		"Change":          api.Change{Op: api.Add, VNI: 10, MAC: "02:00:00:00:00:0a", Dst: "127.0.0.2"},
		"NeighbourChange": api.NeighbourChange{Op: api.Add, VNI: 10, IP: "10.0.10.7", MAC: "02:00:00:00:00:0b", Dst: "127.0.0.2"},
		"RouteChange":     api.RouteChange{Op: api.Add, Prefix: "10.9.0.0/16", Via: "10.0.10.7"},
		"PortChange":      api.PortChange{Op: api.Add, Name: "tap7"},
	}
	r := begin(t, basic(t))
	_, config := r.ask("GET", "/v1/config", "")
	requests := documented(t)
	known := map[string][]string{}
	for _, x := range requests {
		route := strings.Replace(x.path, "LIST/NAME", "{list}/{name}", 1)
		known[route] = append(known[route], x.method)
		body, rest := "", strings.TrimSpace(x.rest)
		if what, answer, ok := strings.Cut(rest, "   "); ok {
			if b := bodies[what]; b != nil {
				text, err := json.Marshal(b)
				must(t, err)
				body, rest = string(text), strings.TrimSpace(answer)
			} else if what == "a configuration" {
				body, rest = config, strings.TrimSpace(answer)
			}
		}
		if _, answer, ok := strings.Cut(rest, ": "); ok && x.method == "PUT" {
			body, rest = `{"vni": 20}`, answer
		}
		answer, ok := answers[rest]
		if !ok {
			t.Errorf("%s %s: the test has no answer %q", x.method, x.path, rest)
			continue
		}
		path := strings.Replace(x.path, "LIST/NAME", "segments/20", 1)
		tries := []string{""}
		for _, p := range x.params {
			if values[p] == "" {
				t.Errorf("%s %s: the test has no value of %s", x.method, x.path, p)
			}
			tries = append(tries, "?"+p+"="+values[p])
		}
		if slices.Contains(x.params, "dry-run") && x.path == "/v1/port" {
			tries = tries[1:] // the node may have no right to make a device
		}
		slices.Reverse(tries) // dry runs first
		for _, q := range tries {
			if answer == nil {
				q = strings.Replace(q, "port=switch", "vni=10", 1) // it has no ports
				status := 0
				fake.Until(t, "the stream before has ended", func() bool {
					resp, err := r.client.Get("http://node" + path + q)
					must(t, err)
					resp.Body.Close()
					status = resp.StatusCode
					return status != http.StatusConflict
				})
				if status != 200 {
					t.Errorf("%s %s: %d", x.method, path+q, status)
				}
				continue
			}
			status, text := r.ask(x.method, path+q, body)
			d := json.NewDecoder(strings.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(answer()); err != nil || status != 200 {
				t.Errorf("%s %s %s: %d %v\n%s", x.method, path+q, body, status, err, text)
			}
		}
	}
	if len(requests) < 24 {
		t.Errorf("%d requests", len(requests))
	}
	has := newServer(nil, nil, nil).methods
	for _, m := range []map[string][]string{known, has} {
		for _, list := range m {
			slices.Sort(list)
		}
	}
	if fmt.Sprint(known) != fmt.Sprint(has) {
		t.Errorf("documented %v\nthe node has %v", known, has)
	}

	// Other pages mention requests of that list alone.
	mention := regexp.MustCompile(`(?:(GET|PUT|POST|DELETE)(?:, (?:GET|PUT|POST|DELETE))*(?: and (?:GET|PUT|POST|DELETE))? )?` + "`?" + `(/v1/[\w/]+)`)
	n := 0
	must(t, filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range mention.FindAllStringSubmatch(string(text), -1) {
			n++
			route := strings.Replace(m[2], "LIST/NAME", "{list}/{name}", 1)
			if methods := has[route]; methods == nil || m[1] != "" && !slices.Contains(methods, m[1]) {
				t.Errorf("%s: %s: no such request", name, m[0])
			}
		}
		return err
	}))
	if n < 5 {
		t.Errorf("%d requests are mentioned", n)
	}
}

// The command lines with curl are run.
func TestCurl(t *testing.T) {
	r := begin(t, basic(t))
	text, err := os.ReadFile("README.md")
	must(t, err)
	lines := regexp.MustCompile("`(curl [^`]+)`").FindAllSubmatch(text, -1)
	for _, m := range lines {
		line := strings.ReplaceAll(string(m[1]), api.DefaultSocket, r.socket)
		c := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl", "curl -sS --fail", 1))
		out, err := c.Output()
		if err != nil || !json.Valid(bytes.TrimSpace(out)) {
			t.Errorf("%s: %v %q", line, err, out)
		}
	}
	if len(lines) == 0 {
		t.Error("there are none")
	}
}
