// Package cni builds CNI plugins of others for tests.
package cni

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
)

// version is the last of this repository with the plugin flannel; the later flannel-io/cni-plugin is not at every module proxy. It
// reads the same file.
const version = "@v0.9.1"

var building sync.Mutex

// Plugins returns a folder with plugins, such as "meta/flannel" and "ipam/host-local". They are built when they are first needed,
// and kept in the user's cache.
func Plugins(names ...string) (dir string, err error) {
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "vxswitch", "cni-flannel")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, path.Base(name))); err == nil {
			continue
		}
		c := exec.Command("go", "install", "github.com/containernetworking/plugins/plugins/"+name+version)
		c.Dir = os.TempDir()
		c.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", c, err, out)
		}
	}
	return dir, nil
}
