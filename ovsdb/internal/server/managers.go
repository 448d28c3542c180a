package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// maxManagers is how many managers a server connects to.
const maxManagers = 16

const (
	firstPause = time.Second
	lastPause  = 8 * time.Second // the default of max_backoff
)

// A manager is a row of table Manager.
type manager struct {
	target string
	pause  time.Duration // at most
}

// Managers connects to the managers that table Manager has, until ctx is done. secure returns the settings of TLS, nil without any.
func (s *Server) Managers(ctx context.Context, secure func() (*tls.Config, error)) {
	kick := make(chan struct{}, 1)
	kick <- struct{}{}
	s.mu.Lock()
	s.watch, _ = s.db.NewMonitor(store.Update, json.RawMessage(`{"Manager":{"columns":["target","max_backoff"]}}`))
	s.notify = func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	have := map[manager]context.CancelFunc{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		}
		want := map[manager]bool{}
		for _, m := range s.managers() {
			want[m] = true
		}
		for m, cancel := range have {
			if !want[m] {
				cancel()
				delete(have, m)
			}
		}
		for m := range want {
			if have[m] == nil && len(have) < maxManagers {
				var one context.Context
				one, have[m] = context.WithCancel(ctx)
				running.Go(func() { s.manage(one, m, secure) })
			}
		}
	}
}

// managers reads the table.
func (s *Server) managers() (list []manager) {
	out := s.do(`{"op":"select","table":"Manager","where":[],"columns":["target","max_backoff"]}`)
	var results []struct {
		Rows []struct {
			Target     string `json:"target"`
			MaxBackoff any    `json:"max_backoff"`
		} `json:"rows"`
	}
	if json.Unmarshal(out.Reply, &results) != nil || len(results) == 0 {
		return nil
	}
	for _, r := range results[0].Rows {
		m := manager{r.Target, lastPause}
		if ms, ok := r.MaxBackoff.(float64); ok {
			m.pause = time.Duration(min(ms, 3_600_000)) * time.Millisecond
		}
		list = append(list, m)
	}
	return list
}

func (s *Server) do(op string) store.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.Outcome{}
	}
	return s.transact([]json.RawMessage{json.RawMessage(op)}, nil, time.Now())
}

// manage keeps a connection with a manager.
func (s *Server) manage(ctx context.Context, m manager, secure func() (*tls.Config, error)) {
	pause := min(firstPause, m.pause)
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := m.dial(ctx, secure)
		if err == nil {
			s.report(m.target, true, "")
			stop := context.AfterFunc(ctx, func() { kill(conn) })
			s.Serve(conn, "manager")
			stop()
			err = errors.New("the connection has ended")
		}
		if ctx.Err() == nil { // else the row is gone, or another one's, which says what is so
			s.report(m.target, false, err.Error())
		}
		if time.Since(began) > m.pause {
			pause = min(firstPause, m.pause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, m.pause)
	}
}

// report writes is_connected and status of a manager.
func (s *Server) report(target string, connected bool, why string) {
	state := "BACKOFF"
	if connected {
		state = "ACTIVE"
	}
	status := [][2]string{{"state", state}}
	if why != "" {
		status = append(status, [2]string{"last_error", strings.ToValidUTF8(why[:min(200, len(why))], "")})
	}
	text, _ := json.Marshal(map[string]any{
		"op": "update", "table": "Manager", "where": []any{[]any{"target", "==", target}},
		"row": map[string]any{"is_connected": connected, "status": []any{"map", status}},
	})
	s.do(string(text))
}

func (m *manager) dial(ctx context.Context, secure func() (*tls.Config, error)) (net.Conn, error) {
	a, ok := ParseTarget(m.target)
	if !ok {
		return nil, fmt.Errorf("target %.60q: must be tcp:IP[:PORT] or ssl:IP[:PORT]", m.target)
	}
	ctx, cancel := context.WithTimeout(ctx, TLSTime)
	defer cancel()
	return a.Dial(ctx, secure)
}
