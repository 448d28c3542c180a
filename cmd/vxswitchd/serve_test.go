package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// A change over the socket does not undo a reload by SIGHUP that comes while it is made.
func TestReloadDuringChange(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	file := filepath.Join(t.TempDir(), "node.json")
	must(t, os.WriteFile(file, []byte(`{"segments": [{"vni": 40}]}`), 0o644))
	d := &daemon{file: file, n: n, out: io.Discard}
	d.api = newServer(n, silent, d.reload, d.apply)
	defer d.close()
	ended := make(chan error, 1)
	change := d.api.plain(func(w http.ResponseWriter, r *http.Request) error {
		return d.api.setConfig(w, r, func([]byte) (edit, error) {
			return ofNode(func(old *node.Config) (*node.Config, error) {
				go func() { ended <- d.hangup() }()
				for range 20 {
					if time.Sleep(10 * time.Millisecond); len(ended) > 0 {
						break
					}
				}
				return old.With("segments", "30", []byte(`{"vni": 30}`))
			}), nil
		})
	})
	w := httptest.NewRecorder()
	change.ServeHTTP(w, httptest.NewRequest("PUT", "/v1/config/segments/30", strings.NewReader("{}")))
	must(t, <-ended)
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var got []frame.VNI
	for _, s := range n.Config().Segments {
		got = append(got, s.VNI)
	}
	if !slices.Equal(got, []frame.VNI{40}) {
		t.Errorf("segments %v, the file that was read last has 40", got)
	}
}

// A change that would move the socket, and fails, leaves no file of ports where the socket would have been.
func TestFailedMoveOfSocket(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	dir := check.Must(os.MkdirTemp(folder, ""))(t)
	d := &daemon{n: n, out: io.Discard}
	d.api = newServer(n, silent, d.reload, d.apply)
	defer d.close()
	apply := func(socket, tunnels string) error {
		cfg := check.Must(file.Parse(fmt.Appendf(nil, `{"control": {"socket": %q}, "tunnels": [%s], "ports": [{"name": "pod1", "owner": "somebody"}]}`, filepath.Join(dir, socket), tunnels)))(t)
		return d.apply(cfg)
	}
	must(t, apply("a", ""))
	if err := apply("b", `{"name": "vx", "local": "192.0.2.77"}`); err == nil {
		t.Fatal("no error")
	}
	files := check.Must(os.ReadDir(dir))(t)
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if want := []string{"a", "a.ports"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}

// What is wrong with a configuration of the socket is called by the name that it has there, also where it contradicts what a control
// plane provides.
func TestRefusedBesideProvided(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	d := &daemon{file: "node.json", n: n, out: io.Discard}
	d.api = newServer(n, silent, d.reload, d.apply)
	defer d.close()
	must(t, n.Provide("flannel", &node.Config{Policies: []node.Policy{{Name: "p"}}}))
	w := httptest.NewRecorder()
	d.api.http.Handler.ServeHTTP(w, httptest.NewRequest("PUT", "/v1/config", strings.NewReader(`{"policies": [{"name": "p"}]}`)))
	var got api.Error
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if want := []string{`config: policies[1].name: "p": duplicate`}; w.Code != 422 || !slices.Equal(got.Lines, want) {
		t.Errorf("%d %q, want %q", w.Code, got.Lines, want)
	}
}
