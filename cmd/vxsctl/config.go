package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/vxswitch/vxswitch/api"
)

// maxConfig is more than a node takes.
const maxConfig = 32 << 20

// config shows the configuration, or compares or replaces it.
func (s *session) config(ctx context.Context, w *words) error {
	verb := w.verb("apply", "diff")
	if verb == "" {
		return s.show(ctx, w, nil)
	}
	if len(w.rest) != 1 {
		return w.wrong("%s: requires one file name, or - for standard input", verb)
	}
	name, from := w.rest[0], io.Reader(s.in)
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, maxConfig))
	if err != nil {
		return err
	}
	q := api.Query{}
	if verb == "diff" {
		q["dry-run"] = "true"
	}
	answer, err := s.Do(ctx, http.MethodPut, "/v1/config", q, text)
	if refused := (*api.Error)(nil); errors.As(err, &refused) {
		for i, line := range refused.Lines { // the node calls the file config
			refused.Lines[i] = name + strings.TrimPrefix(line, "config")
		}
	}
	if err != nil {
		return err
	}
	if s.json {
		_, err = s.out.Write(answer)
		return err
	}
	var done api.ConfigChange
	if err := json.Unmarshal(answer, &done); err != nil {
		return fmt.Errorf("%s: invalid answer: %w", s.Socket(), err)
	}
	for _, d := range done.Differences {
		if _, err := fmt.Fprintln(s.out, difference(d)); err != nil {
			return err
		}
	}
	return nil
}

// difference returns a line such as "~ ports[tap0].mtu: 1450 -> 1500".
func difference(d api.Difference) string {
	switch d.Op {
	case "add":
		return fmt.Sprintf("+ %s: %s", d.Path, d.New)
	case "del":
		return fmt.Sprintf("- %s: %s", d.Path, d.Old)
	}
	return fmt.Sprintf("~ %s: %s -> %s", d.Path, d.Old, d.New)
}
