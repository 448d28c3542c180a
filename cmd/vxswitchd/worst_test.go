package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// Ten minutes, on a clock that does not wait, of a process that hangs up on requests, asks and
// reloads without end, and takes every connection and stream there is: another process of the same
// user has its answers within a second.
func TestWorstRequests(t *testing.T) {
	const attackers, rounds, pace = 20, 300, 2 * time.Second // connections of each kind; rounds of requests, and how often
	run := func(attack bool) (served int) {
		synctest.Test(t, func(t *testing.T) {
			s, results := newServer(nil, silent, nil, nil), make(chan int, 3)
			handlers := map[string]http.Handler{
				"table": s.table(func(http.ResponseWriter, *http.Request) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				}),
				"change": s.plain(func(w http.ResponseWriter, r *http.Request) error {
					return s.change(w, r, "", func() error { return nil }) // no time: under its lock the clock would stand still
				}),
				"stream": s.streaming(func(w http.ResponseWriter, r *http.Request) error {
					w.WriteHeader(http.StatusOK)
					<-r.Context().Done()
					return nil
				}),
				"nothing": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			}
			// ask makes requests of a kind on one connection, until it is closed after a while.
			ask := func(w who, kind string, requests int, d time.Duration) (ok int) {
				ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), whoKey{}, w), d)
				defer cancel()
				if !s.conns.enter(ctx, w, 0) {
					return 0
				}
				defer s.conns.leave(w)
				for range requests {
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
					answer := httptest.NewRecorder()
					if handlers[kind].ServeHTTP(answer, r); answer.Code == http.StatusOK && (kind == "stream" || ctx.Err() == nil) {
						ok++
					}
				}
				return ok
			}
			over := time.Now().Add(rounds * pace)
			again := func(kind string, requests int, d time.Duration) {
				for range attackers {
					go func() {
						for time.Now().Before(over) {
							ask(who{"1", 1}, kind, requests, d)
							time.Sleep(200 * time.Millisecond)
						}
					}()
				}
			}
			if attack {
				again("table", 1, time.Microsecond)
				again("table", 50, time.Second)
				again("change", 50, time.Second)
				again("stream", 1, time.Minute)
				again("nothing", 1, time.Minute)
			}
			for begun, n := time.Now(), 1; n <= rounds; n++ {
				for _, kind := range []string{"table", "change", "stream"} {
					go func() { results <- ask(who{"1", 2}, kind, 1, time.Second) }()
				}
				time.Sleep(time.Until(begun.Add(time.Duration(n) * pace)))
				for range 3 {
					served += <-results
				}
			}
			synctest.Wait()
			time.Sleep(2 * time.Minute) // the last of them hang up
		})
		return served
	}
	worst.Kept(t, "requests of the control socket", run(false), run(true))
}
