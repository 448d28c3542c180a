package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// withMetrics starts a node with -metrics and returns the address.
func withMetrics(t *testing.T, addr string) (*running, string) {
	t.Helper()
	return withMetricsOf(t, basic(t), addr)
}

// withMetricsOf is withMetrics of another configuration.
func withMetricsOf(t *testing.T, text, addr string) (*running, string) {
	t.Helper()
	r := begin(t, text, "-metrics", addr)
	m := regexp.MustCompile(`metrics=(\S+)\n`).FindStringSubmatch(r.out.String())
	if m == nil {
		t.Fatalf("%q", r.out.String())
	}
	return r, m[1]
}

func getMetrics(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp := check.Must(c.Get("http://" + addr + path))(t)
	defer resp.Body.Close()
	text := check.Must(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text)
}

// A scrape has the series of the node, of the process and of the build, and promlint finds nothing.
func TestMetrics(t *testing.T) {
	r, addr := withMetrics(t, ":0")
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("without a host it listens on %s", addr)
	}
	status, text := getMetrics(t, addr, "/metrics")
	for _, want := range []string{`vxswitch_fdb_entries{vni="`, "go_build_info{", "process_open_fds ", "go_goroutines "} {
		if status != 200 || !strings.Contains(text, "\n"+want) {
			t.Errorf("%d, no %s", status, want)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if len(problems) > 0 || err != nil {
		t.Errorf("%v %v", problems, err)
	}
	if status, text := getMetrics(t, addr, "/healthz"); status != 200 || text != "ok\n" {
		t.Errorf("%d %q", status, text)
	}
	if status, _ := getMetrics(t, addr, "/other"); status != 404 {
		t.Errorf("%d", status)
	}
	var stderr check.Log
	if code := run(t.Context(), []string{"-config", r.file, "-metrics", addr}, io.Discard, &stderr); code != 1 ||
		!strings.Contains(stderr.String(), "another program listens on it") && !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("%d %q", code, stderr.String())
	}
	if code := r.stop(); code != 0 {
		t.Errorf("status %d", code)
	}
}

// Health names the ports and tunnels that are down, a line each.
func TestHealth(t *testing.T) {
	since := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	w := httptest.NewRecorder()
	health(w, []node.DownPort{
		{Name: "tap0", Since: since, Err: errors.Join(errors.New("one"), errors.New("two"))},
		{Name: "tun0", Since: since, Err: errors.New("three")},
	}, map[string]error{"vx": errors.New("four")})
	want := "port tap0 is down since 2026-11-24T10:00:00Z: one; two\nport tun0 is down since 2026-11-24T10:00:00Z: three\n" +
		"tunnel vx is down until the next change: four\n"
	if w.Code != 503 || w.Body.String() != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

// A client that scrapes without end costs another no scrape.
func TestFloodingScrapers(t *testing.T) {
	_, addr := withMetrics(t, "127.0.0.1:0")
	from := func(host byte) *http.Client {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
		c := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}, Timeout: 5 * time.Second}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	ctx, stop := context.WithCancel(t.Context())
	var floods sync.WaitGroup
	defer floods.Wait()
	defer stop()
	for flood, i := from(2), 0; i < 16; i++ {
		floods.Go(func() {
			for ctx.Err() == nil {
				if resp, err := flood.Get("http://" + addr + "/metrics"); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	c := from(3)
	for range 30 {
		resp := check.Must(c.Get("http://" + addr + "/metrics"))(t)
		io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Error(resp.Status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A client with many connections that say nothing leaves places for others.
func TestStalledScrapers(t *testing.T) {
	_, addr := withMetrics(t, "127.0.0.1:0")
	for range maxScrapers {
		c := check.Must(net.Dial("tcp", addr))(t)
		defer c.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: d.DialContext}}
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/healthz", addr), nil)
	resp := check.Must(c.Do(req))(t)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
}
