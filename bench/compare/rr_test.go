package main

import (
	"net"
	"testing"
	"time"
)

func TestRequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- echo(ln) }()
	begin := time.Now()
	r, err := request(ln.Addr().String(), 50*time.Millisecond)
	took := time.Since(begin)
	ln.Close()
	must(t, err)
	if r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.P999 < r.P99 || took < 50*time.Millisecond {
		t.Errorf("%+v in %v", r, took)
	}
	// Half of the transactions take the median or longer, one after the other.
	if r.PerSecond*r.P50/2 > 1.1e6 {
		t.Errorf("%v a second with a median of %v us", r.PerSecond, r.P50)
	}
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("the echo goes on without its listener")
	}
}
