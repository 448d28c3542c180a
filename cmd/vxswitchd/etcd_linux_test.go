package main

import (
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// An etcdHost is 192.0.2.100 with etcd.
type etcdHost struct {
	t    *testing.T
	host *netns.Host
	proc *netns.Proc
	data string
}

// newEtcdHost starts etcd on a host at a switch.
func newEtcdHost(t *testing.T, n *netns.Net, sw *netns.Host) *etcdHost {
	netns.Tool(t, "etcd")
	netns.Tool(t, "etcdctl")
	e := &etcdHost{t: t, host: n.Host("etcd"), data: t.TempDir()}
	n.Plug(e.host, "192.0.2.100/24", sw)
	e.begin()
	return e
}

// begin starts etcd, with what it had.
func (e *etcdHost) begin() {
	e.t.Helper()
	const url = "http://192.0.2.100:2379"
	e.proc = e.host.Start("env", "ETCD_UNSUPPORTED_ARCH=arm64", "etcd", "--data-dir", e.data, "--listen-client-urls", "http://0.0.0.0:2379", "--advertise-client-urls", url)
	e.host.Until("etcd answers", func() bool {
		_, err := e.host.Try(e.t.Context(), "env", "ETCDCTL_API=3", "etcdctl", "get", "x")
		return err == nil
	})
}

func (e *etcdHost) kill() {
	e.proc.Signal(syscall.SIGKILL)
	e.proc.Wait()
}

func (e *etcdHost) ctl(args ...string) string {
	e.t.Helper()
	return e.host.Run("env", append([]string{"ETCDCTL_API=3", "etcdctl"}, args...)...)
}
