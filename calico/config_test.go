package calico

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
)

func good() *Config { return &Config{Node: "a", VRF: "v", VXLAN: Tunnel{Segment: 4096}} }

func TestCheckNil(t *testing.T) {
	check.ErrorHas(t, (*Config)(nil).Check(), `calico: Config.Node: "": must be`, `VRF: "": must be`)
}

// Settings of sessions are errors where there are none.
func TestNoBGP(t *testing.T) {
	c := good()
	c.RouterID, c.GracefulRestart = netip.MustParseAddr("192.0.2.1"), true
	c.Listen, c.Local = []netip.Addr{c.RouterID}, []netip.Addr{c.RouterID}
	check.OK(t, c.Check())
	c.NoBGP = true
	check.ErrorHas(t, c.Check(), `calico: Config.RouterID: 192.0.2.1: is of sessions, and noBGP says that there are none`, `Listen: [192.0.2.1]: is of sessions`, `Local: [192.0.2.1]: is of sessions`, `GracefulRestart: true: is of sessions`)
}

// Files that cannot be read are named, with why.
func TestCheckFiles(t *testing.T) {
	c := good()
	check.OK(t, c.CheckFiles())
	is := filepath.Join(t.TempDir(), "is")
	check.OK(t, os.WriteFile(is, []byte("secret\n"), 0o600))
	c.Etcd = Etcd{Settings: etcd.Settings{Username: "u", PasswordFile: is, CertFile: is, KeyFile: is, CAFile: is}}
	check.OK(t, c.CheckFiles())
	c.Etcd.PasswordFile, c.Etcd.CAFile = "nowhere", "there"
	var errs setting.Errors
	if err := c.CheckFiles(); !errors.As(err, &errs) || len(errs) != 2 {
		t.Fatal(err)
	}
	check.ErrorHas(t, errs, `calico: Config.Etcd.PasswordFile: "nowhere": no such file or directory`, `Etcd.CAFile: "there": no such file or directory`)
}
