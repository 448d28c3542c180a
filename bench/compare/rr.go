package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// echoPort is where the echo listens.
const echoPort = ":7007"

// echo answers every byte of every connection with itself.
func echo(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		f, err := blocking(c)
		if err != nil {
			return err
		}
		go func() {
			defer f.Close()
			b := make([]byte, 1)
			for {
				if _, err := f.Read(b); err != nil {
					return
				}
				if _, err := f.Write(b); err != nil {
					return
				}
			}
		}()
	}
}

// transactions is what request measured: times in microseconds.
type transactions struct {
	PerSecond      float64
	P50, P99, P999 float64
}

// request sends a byte and waits for it to come back, again and again for a while. It
// tries for 10 s to connect.
func request(addr string, d time.Duration) (t transactions, err error) {
	var c net.Conn
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err = net.DialTimeout("tcp", addr, time.Until(end)); err == nil {
			break
		}
		if time.Now().After(end) {
			return t, fmt.Errorf("no path between the guests: %w", err)
		}
	}
	f, err := blocking(c)
	if err != nil {
		return t, err
	}
	defer f.Close()
	took := make([]time.Duration, 0, 1<<20)
	b := make([]byte, 1)
	begin := time.Now()
	last := begin
	for last.Sub(begin) < d {
		if _, err := f.Write(b); err != nil {
			return t, err
		}
		if _, err := io.ReadFull(f, b); err != nil {
			return t, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	slices.Sort(took)
	at := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))]) / float64(time.Microsecond)
	}
	return transactions{float64(len(took)) / last.Sub(begin).Seconds(), at(0.50), at(0.99), at(0.999)}, nil
}

// rr measures transactions between the guests, with the echo that warm has started.
func (l *lab) rr(ctx context.Context, d string) (t transactions, err error) {
	limit, err := time.ParseDuration(d)
	if err != nil {
		return t, err
	}
	out, err := netns.Output(ctx, limit+netns.Timeout, l.guests[0], l.self, "rr", l.guestAddr(1)+echoPort, d)
	if err == nil {
		err = json.Unmarshal(out, &t)
	}
	return t, err
}
