package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/setting"
)

func TestOptions(t *testing.T) {
	o, err := parse([]string{"-etcd-endpoints", "http://10.0.0.1:2379,http://10.0.0.2:2379", "-iface", "eth0", "-iface=eth1", "--ip-masq", "-kube-subnet-mgr=false", "-iptables-forward-rules=false"},
		[]string{"FLANNELD_ETCD_PREFIX=/a/b", "FLANNELD_IFACE=eth9", "FLANNELD_SUBNET_LEASE_RENEW_MARGIN=5", "FLANNELD_PUBLIC_IP=", "OTHER=1"})
	if err != nil {
		t.Fatal(err)
	}
	c := o.cfg
	if len(c.Endpoints) != 2 || c.Prefix != "/a/b" || !slices.Equal(c.Iface, []string{"eth0", "eth1"}) || !c.IPMasq || c.RenewMargin != 5*time.Minute || c.SubnetFile != "/run/flannel/subnet.env" || c.Mode != TAP {
		t.Errorf("%+v", o)
	}
	for args, want := range map[string]string{
		"-no-such-flag":                   "flag provided but not defined: -no-such-flag",
		"eth0":                            `unexpected argument "eth0"`,
		"-etcd-endpoints 10.0.0.1:2379":   `-etcd-endpoints: "10.0.0.1:2379": must be URLs such as`,
		"-kube-subnet-mgr":                "-kube-subnet-mgr: NODE_NAME, or POD_NAMESPACE and POD_NAME, must be in the environment",
		"-iptables-resync 5":              "-iptables-resync: vxflanneld has no such flag: the rules are set once",
		"-ip-blackhole-route":             "-ip-blackhole-route: vxflanneld has no such flag: a route for addresses without a pod is not built",
		"-iptables-forward-rules=true":    "-iptables-forward-rules: vxflanneld has no such flag: allow forwarding in your own rules",
		"-public-ip fd00::1":              "-public-ip: fd00::1: must be an IPv4 address that other hosts reach",
		"-public-ip 127.0.0.1":            "-public-ip: 127.0.0.1: must be an IPv4 address that other hosts reach",
		"-public-ipv6 10.0.0.1":           "-public-ipv6: 10.0.0.1: must be an IPv6 address that other hosts reach",
		"-iface-can-reach 0.0.0.0":        "-iface-can-reach: 0.0.0.0: must be",
		"-iface-regex (":                  `-iface-regex: "(": error parsing regexp`,
		"-subnet-lease-renew-margin 1440": "-subnet-lease-renew-margin: 1440: must be 1 to 1439",
		"-healthz-port 70000":             "-healthz-port: 70000: must be 0 to 65535",
		"-healthz-port x":                 `"x" for flag -healthz-port: must be a whole number`,
		"-healthz-ip x -healthz-port 1":   `-healthz-ip: "x": must be an address of this host`,
		"-v x":                            `"x" for flag -v: must be a whole number`,
		"-ip-masq=x":                      `"x" for -ip-masq: must be true or false`,
		"-vmodule x=2":                    "-vmodule: vxflanneld has no such flag: the log has two levels",
		"-log_backtrace_at x:2":           "-log_backtrace_at: vxflanneld has no such flag",
		"-etcd-endpoints http://10.0.0.1": `-etcd-endpoints: "http://10.0.0.1": must be URLs such as`,
		"-mode l3":                        "use the section flannel of its file",
		"-mode x":                         `"x" for flag -mode: must be tap`,
		"-datapath x":                     `"x" for flag -datapath: "x": must be one of user, kernel, auto`,
		"-generation 4":                   "-generation: 4: must be 1 to 3",
		"-etcd-keyfile x":                 `-etcd-certfile: "": it is needed with a key`,
		"-etcd-password x":                `-etcd-username: "": it is needed with a password`,
	} {
		if _, err := parse(strings.Fields(args), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if o, err := parse([]string{"-public-ip=", "-iface=", "-iface-can-reach="}, nil); err != nil || o.cfg.PublicIP.IsValid() || len(o.cfg.Iface) > 0 {
		t.Errorf("empty flags: %v", err)
	}
	if _, err := parse(nil, []string{"FLANNELD_IP_BLACKHOLE_ROUTE=true"}); err == nil || !strings.HasPrefix(err.Error(), "-ip-blackhole-route: ") {
		t.Error(err)
	}
	if _, err := parse(nil, []string{"FLANNELD_HEALTHZ_PORT=x"}); err == nil || !strings.HasPrefix(err.Error(), `FLANNELD_HEALTHZ_PORT: "x": must be a whole number`) {
		t.Error(err)
	}
}

// What only a run finds to be wrong with a setting is called by its flag, too; settings of others have none.
func TestFlagged(t *testing.T) {
	c := new(Config)
	c.CertFile, c.KeyFile, c.CAFile = "/none/c", "/none/k", "/none/ca"
	for _, x := range []struct {
		err  error
		want string
	}{
		{c.CheckFiles(), `-etcd-certfile: "/none/c": no such file or directory; ` +
			`-etcd-keyfile: "/none/k": no such file or directory; -etcd-cafile: "/none/ca": no such file or directory`},
		{&setting.Error{Path: "subnetFile", Value: "x", Text: "no"}, `-subnet-file: "x": no`},
		{&setting.Error{Path: "tunnels[1].name", Value: "x", Text: "no"}, `tunnels[1].name: "x": no`},
		{flannel.ErrLost, "the lease is lost"},
	} {
		if got := oneLine(flagged(x.err)); got != x.want {
			t.Errorf("%s, want %s", got, x.want)
		}
	}
}
