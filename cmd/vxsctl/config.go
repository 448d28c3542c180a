package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
)

// maxConfig is more than a node takes.
const maxConfig = 32 << 20

// config shows the configuration or an element of it, or compares, replaces or deletes it.
func (s *session) config(ctx context.Context, w *words) error {
	verb, method, q := w.verb("show", "apply", "diff", "del"), http.MethodGet, api.Query{}
	path, err := w.part()
	if err != nil {
		return err
	}
	whole := path == "/v1/config"
	if whole && w.to == nil {
		switch stray := len(w.rest); {
		case verb == "" && stray > 0:
			return w.not(slices.Concat([]string{"show", "apply", "diff", "del"}, api.Lists)...)
		case verb == "show" && stray > 0, verb == "del" && stray > 1, stray > 2:
			return w.wrong("%s: %q: must be one of %s", verb, w.rest[0], strings.Join(api.Lists, ", "))
		}
	}
	var name string
	var text []byte
	switch verb {
	case "diff":
		q["dry-run"] = "true"
		fallthrough
	case "apply":
		method = http.MethodPut
		name, text, err = s.file(ctx, w, verb)
	case "del":
		if method = http.MethodDelete; whole {
			return w.wrong("del: requires LIST NAME, such as ports tap0")
		}
		fallthrough
	default:
		_, err = w.keys()
	}
	if err != nil {
		return err
	}
	answer, err := s.Do(ctx, method, path, q, text)
	if refused := (*api.Error)(nil); name != "" && errors.As(err, &refused) {
		for i, line := range refused.Lines { // the node calls the file config
			refused.Lines[i] = name + strings.TrimPrefix(line, "config")
		}
	}
	if err != nil {
		return err
	}
	if method == http.MethodGet || s.json {
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

// part takes the words of an element of a list, and returns its path, or without them that of the configuration.
func (w *words) part() (string, error) {
	list := w.verb(api.Lists...)
	switch {
	case list == "":
		return "/v1/config", nil
	case len(w.rest) == 0:
		return "", w.wrong("%s: requires a name, of a segment its VNI", list)
	}
	if w.last() {
		w.to.names(list)
		return "", errOffered
	}
	name := w.rest[0]
	w.rest = w.rest[1:]
	return api.Part{List: list, Name: name}.Path(), nil
}

// file reads the file that the last word names.
func (s *session) file(ctx context.Context, w *words, verb string) (name string, text []byte, err error) {
	if w.to != nil {
		w.to.file = len(w.rest) == 1
		return "", nil, errOffered
	}
	if len(w.rest) != 1 {
		return "", nil, w.wrong("%s: requires one file name, or - for standard input", verb)
	}
	name, from := w.rest[0], io.Reader(s.in)
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		from = f
	}
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	go func() { // it may be a terminal or a pipe
		text, err := io.ReadAll(io.LimitReader(from, maxConfig))
		read <- input{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", nil, ctx.Err()
	case x := <-read:
		return name, x.text, x.err
	}
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
