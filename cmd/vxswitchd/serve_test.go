package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// A change over the socket does not undo a reload by SIGHUP that comes while it is made.
func TestReloadDuringChange(t *testing.T) {
	n, err := node.New(&node.Options{Owners: []string{owner}})
	must(t, err)
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
