package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/vxswitch/vxswitch/api"
)

const clock = "15:04:05.000000"

// errEnded is the unexpected end of a stream.
var errEnded = errors.New("the node closed the stream: it was stopped, or the output was read too slowly")

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
			{"ip", e.IP}, {"mac", e.MAC}, {"old-mac", e.OldMAC}, {"dest", e.Dest}, {"from", e.Old}, {"error", e.Error},
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
	body, err := s.open(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		text := lines.Text()
		if !s.json {
			if text, err = shown(lines.Bytes()); err != nil {
				return fmt.Errorf("%s: invalid answer: %w", s.socket, err)
			}
		}
		if _, err := io.WriteString(s.out, text+"\n"); err != nil {
			return err
		}
	}
	return errEnded
}
