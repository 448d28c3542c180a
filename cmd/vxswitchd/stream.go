package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// A stream is an answer of JSON lines, sent with a short delay.
type stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf *bufio.Writer
	enc *json.Encoder

	first time.Time // when buf had its first line

	perSecond int // lines; beyond, the stream waits and its source drops
	second    time.Time
	lines     int
}

func newStream(w http.ResponseWriter, kind string, perSecond int) *stream {
	s := &stream{w: w, rc: http.NewResponseController(w), perSecond: perSecond}
	s.buf = bufio.NewWriterSize(s, 32<<10)
	s.enc = json.NewEncoder(s.buf)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	s.rc.Flush() // tell the client that it has begun
	return s
}

// Write sends b immediately. It disconnects a client that does not read.
func (s *stream) Write(b []byte) (int, error) {
	s.rc.SetWriteDeadline(time.Now().Add(stalled))
	n, err := s.w.Write(b)
	if err == nil {
		err = s.rc.Flush()
	}
	return n, err
}

// each writes the values of next until the client or the source ends.
func each[T any](ctx context.Context, s *stream, next func(context.Context) (T, error), shown func(T) any) {
	for {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if s.buf.Buffered() > 0 {
			wait, cancel = context.WithDeadline(ctx, s.first.Add(tidy))
		}
		v, err := next(wait)
		cancel()
		switch {
		case err == nil:
			if s.buf.Buffered() == 0 {
				s.first = time.Now()
			}
			if s.enc.Encode(shown(v)) != nil || s.pace(ctx) != nil {
				return
			}
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if s.buf.Flush() != nil {
				return
			}
		default:
			s.buf.Flush()
			return
		}
	}
}

// pace limits the lines per second.
func (s *stream) pace(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.second) >= time.Second {
		s.second, s.lines = now, 0
	}
	if s.lines++; s.lines < s.perSecond {
		return nil
	}
	if err := s.buf.Flush(); err != nil {
		return err
	}
	return sleep(ctx, s.second.Add(time.Second).Sub(now))
}
