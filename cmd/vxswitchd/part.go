package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/node"
)

// getPart answers with one element of a list of the configuration, with defaults.
func (s *server) getPart(w http.ResponseWriter, r *http.Request) error {
	cfg := effective(s.config())
	x, err := findPart(r, cfg)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tag(cfg))
	w.Write(append(text, '\n'))
	return nil
}

// putPart adds or replaces an element.
func (s *server) putPart(w http.ResponseWriter, r *http.Request) error {
	list, name := r.PathValue("list"), r.PathValue("name")
	if err := checkList(list); err != nil {
		return err
	}
	return s.setConfig(w, r, func(text []byte) (edit, error) {
		return adopting(ofNode(func(old *node.Config) (*node.Config, error) { return old.With(list, name, text) })), nil
	})
}

// deletePart deletes an element.
func (s *server) deletePart(w http.ResponseWriter, r *http.Request) error {
	return s.setConfig(w, r, func([]byte) (edit, error) {
		list, name := r.PathValue("list"), r.PathValue("name")
		without := ofNode(func(old *node.Config) (*node.Config, error) { return old.Without(list, name) })
		next := func(old *file.Config) (*file.Config, error) {
			if _, err := findPart(r, effective(old)); err != nil {
				return nil, err
			}
			return without(old)
		}
		if list == "ports" {
			return next, nil
		}
		return adopting(next), nil
	})
}

func checkList(list string) error {
	if !slices.Contains(api.Lists, list) {
		return wrong(http.StatusNotFound, "%q: must be one of %s", list, strings.Join(api.Lists, ", "))
	}
	return nil
}

// findPart returns the element that a request is about.
func findPart(r *http.Request, cfg []byte) (any, error) {
	list, name := r.PathValue("list"), r.PathValue("name")
	if err := checkList(list); err != nil {
		return nil, err
	}
	tree, err := treeOf(cfg)
	if err != nil {
		return nil, err
	}
	for _, x := range objects(tree, list) {
		if fmt.Sprint(cmp.Or(x["name"], x["vni"])) == name {
			return x, nil
		}
	}
	return nil, wrong(http.StatusNotFound, "%s: there is no %q", list, name)
}
