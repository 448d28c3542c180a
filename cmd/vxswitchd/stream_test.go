package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// flushes notes when an answer is sent.
type flushes struct {
	*httptest.ResponseRecorder
	at []time.Time
}

func (f *flushes) Write(b []byte) (int, error) {
	f.at = append(f.at, time.Now())
	return f.ResponseRecorder.Write(b)
}

// A line is sent within the delay of a stream, also if others follow all the time.
func TestStreamDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &flushes{ResponseRecorder: httptest.NewRecorder()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last, most := time.Now(), 0*time.Second
		each(ctx, newStream(w, "text/plain", maxEvents), func(ctx context.Context) (int, error) {
			if n := len(w.at); n > 0 && w.at[n-1].After(last) {
				last = w.at[n-1]
			}
			most = max(most, time.Since(last))
			return 1, sleep(ctx, tidy/2)
		}, func(n int) any { return n })
		if most > 3*tidy {
			t.Errorf("nothing is sent for %v", most)
		}
	})
}
