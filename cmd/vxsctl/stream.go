package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/vxswitch/vxswitch/api"
)

const clock = "15:04:05.000000"

// monitor prints events as they happen.
func (s *session) monitor(ctx context.Context, w *words) error {
	if _, err := w.keys(); err != nil {
		return err
	}
	return s.stream(ctx, "/v1/monitor", nil, func(line []byte) (string, error) {
		var e api.Event
		err := json.Unmarshal(line, &e)
		text := e.Time.Local().Format(clock) + " " + e.Event
		if e.VNI != nil {
			text += fmt.Sprintf(" vni %d", *e.VNI)
		}
		for _, x := range []struct{ name, value string }{
			{"ip", e.IP}, {"mac", e.MAC}, {"old-mac", e.OldMAC}, {"dest", e.Dest}, {"from", e.Old}, {"error", e.Error}, {"proto", e.Proto}, {"row", e.Row},
		} {
			if x.value != "" {
				text += " " + x.name + " " + x.value
			}
		}
		if e.Pinned {
			text += " pinned"
		}
		return text, err
	})
}

// trace prints forwarding decisions.
func (s *session) trace(ctx context.Context, w *words) error {
	q, err := w.keys("every", "mac", "vni", "dest")
	if err != nil {
		return err
	}
	lost := uint64(0)
	return s.stream(ctx, "/v1/trace", q, func(line []byte) (string, error) {
		var r api.TraceRecord
		err := json.Unmarshal(line, &r)
		text := ""
		if r.Lost > lost {
			text, lost = fmt.Sprintf("(%d frames are not shown: there were too many)\n", r.Lost-lost), r.Lost
		}
		text += r.Time.Local().Format(clock) + fmt.Sprintf(" vni %d from %s", r.VNI, r.From)
		if r.Src != "" {
			text += " " + r.Src + " > " + r.Dst
		}
		text += fmt.Sprintf(" type %s len %d: %s", r.Type, r.Len, r.Verdict)
		if r.To != "" {
			text += " " + r.To
		}
		if r.Reason != "" {
			text += " " + r.Reason
		}
		return text, err
	})
}

// stream prints lines until ctx is done or the node closes the stream.
func (s *session) stream(ctx context.Context, path string, q map[string]string, shown func([]byte) (string, error)) error {
	for line, err := range s.Lines(ctx, path, q) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		text := string(line)
		if !s.json {
			if text, err = shown(line); err != nil {
				return fmt.Errorf("%s: invalid answer: %w", s.Socket(), err)
			}
		}
		if _, err := io.WriteString(s.out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}
