package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An ADD that is killed at any moment leaves nothing that DEL does not delete, and nothing that GC and the end of the container do not.
func TestKilled(t *testing.T) {
	for _, kind := range []string{veth, tap} {
		t.Run(kind, func(t *testing.T) {
			n, a, _ := newPair(t)
			l := a.network(`, "port": "` + kind + `"`)
			conf := strings.Replace(string(l.Plugins[0].Bytes), "{", `{"name": "pods", "cniVersion": "1.1.0", `, 1)
			begin := time.Now()
			whole := at(n.Host("whole"), "eth0")
			a.add(l, whole)
			took, ended := time.Since(begin), 0
			must(t, a.del(l, whole))
			for i := range 20 {
				pod := n.Host(fmt.Sprintf("k%d", i))
				rt := at(pod, "eth0")
				c := exec.Command(filepath.Join(a.bin, "vxswitch-cni"))
				c.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID="+rt.ContainerID, "CNI_NETNS="+rt.NetNS, "CNI_IFNAME=eth0", "CNI_PATH="+a.bin)
				c.Stdin = strings.NewReader(conf)
				a.Do(func() { must(t, c.Start()) })
				after := took * time.Duration(i) / 13
				time.Sleep(after)
				// Not host-local, which would leave an address that no DEL finds: between making a file and writing whose it is.
				_ = c.Process.Kill()
				if c.Wait() == nil {
					ended++
				}
				time.Sleep(50 * time.Millisecond) // for what the node was asked to do
				when := fmt.Sprintf("killed after %v", after)
				if i%2 == 0 {
					must(t, a.gc(l))
					must(t, netns.Remove(pod.NS))
					a.Until(when+", nothing is left", func() bool { return len(a.left()) == 0 })
					continue
				}
				must(t, a.del(l, rt))
				a.wantNothing(when)
				if got := pod.IP("-o", "link"); strings.Contains(got, "eth0") && kind == veth { // a TAP may have no other name yet
					t.Error(got)
				}
			}
			t.Logf("ADD takes %v; %d of 20 ended by themselves", took, ended)
			if ended == 20 {
				t.Error("none was killed")
			}
		})
	}
}
