package daemon

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/setting/conf"
)

// Each wrong setting is named by its key in a file.
func TestConfigCheck(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"":                                         func(c *Config) {},
		"etcdEndpoints: x: must be URLs":           func(c *Config) { c.Endpoints = []string{"x"} },
		"etcdPrefix: x: must be a path":            func(c *Config) { c.Prefix = "x" },
		"etcdKeyFile: : it is needed":              func(c *Config) { c.CertFile = "x" },
		"etcdPasswordFile: x: requires a user":     func(c *Config) { c.PasswordFile = "x" },
		"mode: 7: must be l3 or tap":               func(c *Config) { c.Mode = 7 },
		"ifaceRegex: (: error parsing":             func(c *Config) { c.IfaceRegex = []string{"("} },
		"ifaceCanReach: 224.0.0.1: must be":        func(c *Config) { c.IfaceCanReach = netip.MustParseAddr("224.0.0.1") },
		"publicIP: fd00::1: must be":               func(c *Config) { c.PublicIP = netip.MustParseAddr("fd00::1") },
		"publicIP: 127.0.0.1: must be":             func(c *Config) { c.PublicIP = netip.MustParseAddr("127.0.0.1") },
		"publicIPv6: ::ffff:10.0.0.1: must be":     func(c *Config) { c.PublicIPv6 = netip.MustParseAddr("::ffff:10.0.0.1") },
		"subnetLeaseRenewMargin: 24h0m0s: must be": func(c *Config) { c.RenewMargin = 24 * time.Hour },
		"generation: 4: must be 1 to 3":            func(c *Config) { c.Generation = 4 },
		"pods: 0: must be the VNI of a segment":    func(c *Config) { c.Pods = 0 },
		"pods: 16777216: must be the VNI":          func(c *Config) { c.Pods = 1 << 24 },
		"direct: 16777216: must be 1 to 16777215":  func(c *Config) { c.Direct = 1 << 24 },
		"direct: 200: is the segment of the pods":  func(c *Config) { c.Direct = 200 },
		"gateway: fd00::1: must be the IPv4":       func(c *Config) { c.Direct, c.Gateway = 7, netip.MustParseAddr("fd00::1") },
		"gateway6: 192.0.2.1: must be the IPv6":    func(c *Config) { c.Direct, c.Gateway6 = 7, netip.MustParseAddr("192.0.2.1") },
		"direct: is needed with gateway":           func(c *Config) { c.Gateway = netip.MustParseAddr("192.0.2.1") },
		"gateway: is for mode l3":                  func(c *Config) { *c = Config{Mode: TAP, Gateway: netip.MustParseAddr("192.0.2.1")} },
		"dev: x: is for mode tap":                  func(c *Config) { c.Device = "x" },
		"dev: a:b: must be a device name":          func(c *Config) { *c = Config{Mode: TAP, Device: "a:b"} },
		"dev: 1234567890123456: must be a device":  func(c *Config) { *c = Config{Mode: TAP, Device: "1234567890123456"} },
		"pods: is for mode l3":                     func(c *Config) { c.Mode = TAP },
		"vrf: is for mode l3":                      func(c *Config) { *c = Config{Mode: TAP, VRF: "x"} },
	} {
		c := Config{Pods: 200}
		change(&c)
		r := new(conf.Report)
		r.Ask("", c, c.Check)
		got := ""
		if err := r.Err(); err != nil {
			got = strings.ReplaceAll(err.Error(), `"`, "")
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := New(&c, &Options{}); (err == nil) != (want == "") {
			t.Errorf("New: %v, want %q", err, want)
		}
	}
}

// A flag is called as flanneld calls it, whatever the setting of a file.
func TestFlagOf(t *testing.T) {
	for _, f := range conf.Fields(reflect.TypeFor[Config]()) {
		name := flagOf(f.Key)
		_, err := parse([]string{"-" + name + "=:"}, nil)
		fileOnly := map[string]bool{"etcd-password-file": true, "pods": true, "vrf": true, "direct": true, "gateway": true, "gateway6": true}[name]
		if unknown := err != nil && strings.Contains(err.Error(), "not defined"); unknown != fileOnly {
			t.Errorf("%s is flag %s: %v", f.Key, name, err)
		}
	}
}
