package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A change that names files of etcd that cannot be read ends no section that runs: it is refused, by the key. At the start it does not stop
// the node.
func TestFlannelFiles(t *testing.T) {
	plain := strings.NewReplacer(`{"vni": 20}`, `{"vni": 20}, {"vni": 40}`, `"control"`, `"flannel": {"pods": 40, "iface": ["none0"]}, "control"`).Replace(basic(t))
	with := strings.Replace(plain, `"pods": 40,`, `"pods": 40, "etcdCAFile": "nowhere", "etcdUsername": "node", "etcdPasswordFile": "`+t.TempDir()+`",`, 1)
	wants := []string{`flannel.etcdCAFile: \"nowhere\": no such file or directory`, `: it is a directory; must be a regular file`}

	r := begin(t, plain)
	r.write(with)
	for _, x := range [][3]string{{"POST", "/v1/reload", ""}, {"PUT", "/v1/config", strings.ReplaceAll(with, "SOCKET", r.socket)}} {
		status, text := r.ask(x[0], x[1], x[2])
		for _, want := range wants {
			if status == http.StatusOK || !strings.Contains(text, want) {
				t.Error(x[1], status, text)
			}
		}
	}
	r.write(plain)
	r.gets(200, "POST", "/v1/reload", "")

	r.stop()
	r = begin(t, with)
	fake.Until(t, "the section is there", func() bool {
		status, _ := r.ask("GET", "/v1/flannel", "")
		return status == http.StatusOK
	})
}
