package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/node"
)

// tag returns the ETag of a configuration with defaults.
func tag(text []byte) string {
	sum := sha256.Sum256(text)
	return fmt.Sprintf(`"%x"`, sum[:8])
}

func (s *server) getConfig(w http.ResponseWriter, r *http.Request) error {
	text := effective(s.config())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tag(text))
	w.Write(text)
	return nil
}

// putConfig applies a configuration, or with "dry-run" only compares it.
func (s *server) putConfig(w http.ResponseWriter, r *http.Request) error {
	return s.setConfig(w, r, func(text []byte) (edit, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil, wrong(http.StatusBadRequest, "body: empty; use {} for a node that does nothing")
		}
		cfg, err := file.Parse(text)
		return adopting(func(*file.Config) (*file.Config, error) { return cfg, nil }), err
	})
}

// An edit returns the configuration in place of an old one.
type edit func(old *file.Config) (*file.Config, error)

// ofNode makes an edit of a whole file from one of the node's configuration. It checks all: sections may refer to what has changed.
func ofNode(next func(old *node.Config) (*node.Config, error)) edit {
	return func(old *file.Config) (*file.Config, error) {
		c, err := next(&old.Config)
		if err != nil {
			return nil, err
		}
		x := *old
		x.Config = *c
		return &x, x.Check()
	}
}

// setConfig applies the edit that read makes of the body of a request, or with "dry-run" only compares.
func (s *server) setConfig(w http.ResponseWriter, r *http.Request, read func(text []byte) (edit, error)) error {
	v, dry := query(r)["dry-run"]
	if dry && v != "" && v != "true" {
		return wrong(http.StatusBadRequest, "dry-run %q: must be true", v)
	}
	if r.ContentLength > maxFile {
		if r.Header.Get("Expect") == "" && r.ContentLength <= maxDiscard {
			discard(w, r.Body)
		}
		return wrong(http.StatusRequestEntityTooLarge, "body: larger than %d bytes", maxFile)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	answer := api.ConfigChange{Applied: !dry}
	if err := s.turn(r, func() error {
		text, err := readBody(w, r, maxFile)
		if err != nil {
			return err
		}
		next, err := read(text)
		if err != nil {
			return refused(err)
		}
		s.changing.Lock()
		defer s.changing.Unlock()
		old := s.config()
		if want := r.Header.Get("If-Match"); want != "" && want != "*" && want != tag(effective(old)) {
			return wrong(http.StatusPreconditionFailed, "the configuration has changed since it was read: read it again")
		}
		cfg, err := next(old)
		if err != nil {
			return refused(err)
		}
		answer.Differences = differences(old, cfg)
		if dry {
			return nil
		}
		err = s.apply(cfg)
		if err == nil {
			if err = newOwned(s.n, &old.Config); err != nil {
				err = errors.Join(err, s.apply(old))
			}
		}
		if err != nil {
			return refused(err)
		}
		return nil
	}); err != nil {
		if f := (failure{}); errors.As(err, &f) && f.status == http.StatusRequestEntityTooLarge {
			discard(w, r.Body)
		}
		return err
	}
	return reply(w, answer)
}

// refused is the answer to a wrong configuration, with the places of errors in the body.
func refused(err error) error {
	if f := (failure{}); errors.As(err, &f) {
		return err
	}
	return failure{http.StatusUnprocessableEntity, located("config", err)}
}

// discard reads what is left of a body. Many a client sends all before it reads the answer, and would see but a closed
// connection.
func discard(w http.ResponseWriter, body io.Reader) {
	now := time.Now()
	c := http.NewResponseController(w)
	c.SetReadDeadline(now.Add(listing))
	c.SetWriteDeadline(now.Add(listing + stalled))
	io.CopyN(io.Discard, body, maxDiscard)
}

// readBody reads the body of a request.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return nil, wrong(http.StatusRequestEntityTooLarge, "body: larger than %d bytes", limit)
	}
	if err != nil {
		return nil, wrong(http.StatusBadRequest, "body: %w", err)
	}
	return text, nil
}
