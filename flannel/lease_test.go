package flannel

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func TestKey(t *testing.T) {
	for key, want := range map[string]string{
		"10.12.13.0-24":                     "10.12.13.0/24",
		"10.12.13.0-24&fd00:12:13::-56":     "10.12.13.0/24, fd00:12:13::/56",
		"0.0.0.0-0&fc00:0:0:1::-64":         "fc00:0:0:1::/64",
		"10.0.0.0-8":                        "10.0.0.0/8",
		"10.12.13.4-30&fd00:12:13::4-126":   "10.12.13.4/30, fd00:12:13::4/126",
		"10.12.13.0-24&1:2:3:4:5:6:7:0-112": "10.12.13.0/24, 1:2:3:4:5:6:7:0/112",
	} {
		s, err := ParseKey(key)
		if err != nil || s.String() != want || s.Key() != key {
			t.Errorf("%s: %v, key %s, %v", key, s, s.Key(), err)
		}
	}
	for key, want := range map[string]Reason{
		"10": BadKey, "10.12.13.0": BadKey, "10.12.13-24": BadKey, "10.12.13.300-24": BadKey, "10.12.13.0-24hi": BadKey, "&2001::-56": BadKey,
		"10.12.13.0-24&:12:13:-56": BadKey, "10.12.13.0-24&20011::-56": BadKey, "10.12.13.0-24&2001-56": BadKey, "10.12.13.0-24&2001::": BadKey,
		"10.12.13.0-24&2001::-56hi": BadKey, "": BadKey, "0.0.0.0-0": BadKey, "10.12.13.0-024": BadKey, "10.12.13.0-24&FC00::-64": BadKey,
		"10.12.13.0-24&fc00:0::-64": BadKey, "10.12.13.0-31": BadKey, "10.12.13.0-24&::ffff:10.0.0.0-120": BadKey, "a/10.12.13.0-24": BadKey,
		strings.Repeat("1", 4096): BadKey, "10.12.13.7-24": HostBits, "10.12.13.0-24&fc00::1-64": HostBits,
	} {
		var r *Refusal
		if s, err := ParseKey(key); !errors.As(err, &r) || r.Reason != want || len(r.Key) > maxName {
			t.Errorf("%.80s: %v, %v, want %v", key, s, err, want)
		}
	}
	if s := (Subnet{}).String(); s != "none" {
		t.Error(s)
	}
}

// The values are those of real flanneld.
func TestParseLease(t *testing.T) {
	mac, mac6 := frame.MAC{0x9e, 0xe4, 0x4c, 9, 0xb4, 0x8b}, frame.MAC{0x9e, 0xe4, 0x4c, 9, 0xb4, 0x8c}
	four, six := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::1")
	for _, c := range []struct {
		key, value string
		want       Attrs
	}{
		{"10.230.33.0-24", `{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}}`,
			Attrs{Type: "vxlan", IPv4: End{four, 1, mac}}},
		{"10.230.33.0-24&fc00::-64", `{"PublicIP":"10.9.0.1","PublicIPv6":"fd00::1","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"},"BackendV6Data":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8c"}}`,
			Attrs{Type: "vxlan", IPv4: End{four, 1, mac}, IPv6: End{six, 1, mac6}}},
		{"0.0.0.0-0&fc00::-64", `{"PublicIP":"0.0.0.0","PublicIPv6":"fd00::1","BackendType":"vxlan","BackendV6Data":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8c"}}`,
			Attrs{Type: "vxlan", IPv6: End{six, 1, mac6}}},
		{"10.230.33.0-24", `{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"host-gw"}`, Attrs{Type: "host-gw", IPv4: End{PublicIP: four}}},
		{"10.230.33.0-24", `{"PublicIP":"10.9.0.1","PublicIPv6":null}`, Attrs{Type: "udp", IPv4: End{PublicIP: four}}},
	} {
		l, err := ParseLease(c.key, []byte(c.value))
		if err != nil || l.Attrs != c.want {
			t.Errorf("%s: %+v, %v", c.value, l, err)
		}
		if b := l.Value(); string(b) != c.value {
			t.Errorf("written %s, want %s", b, c.value)
		}
	}
}

func TestRefusals(t *testing.T) {
	const good = `{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}}`
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatal(old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct {
		key, value, want string
	}{
		{"10.230.33.7-24", good, `host-bits: 10.230.33.7/24: must be 10.230.33.0/24`},
		{"10.230.33.0", good, `key: "10.230.33.0": must be ADDRESS-LENGTH`},
		{"", with(`{`, ``), "value: invalid character"},
		{"", with(`"10.9.0.1"`, `"10.9.0.1`+strings.Repeat(" ", maxValue)+`"`), "oversize: 4213 bytes: must be at most 4096"},
		{"", with("10.9.0.1", "10.9.0"), `value: PublicIP: "10.9.0": must be an address`},
		{"", with("10.9.0.1", "0.0.0.0"), "public-ip: PublicIP: the address of the node is required"},
		{"", with("10.9.0.1", "224.0.0.5"), "public-ip: PublicIP: 224.0.0.5: must be the IPv4 address of one host"},
		{"", with("10.9.0.1", "255.255.255.255"), "public-ip: "},
		{"", with("10.9.0.1", "127.0.0.1"), "public-ip: PublicIP: 127.0.0.1: must be the IPv4 address of one host"},
		{"", with("10.9.0.1", "0.9.0.1"), "public-ip: "},
		{"", with("10.9.0.1", "fd00::1"), "public-ip: PublicIP: fd00::1: must be an IPv4 address"},
		{"", `{"PublicIPv6":null,"BackendType":"vxlan"}`, "public-ip: PublicIP: the address of the node is required"},
		{"", `{"PublicIP":"10.9.0.1","BackendType":"vxlan"}`, "data: BackendData: VNI and VtepMAC are required"},
		{"", with(`{"VNI":1`, `{"VNI":-1`), "data: BackendData.VNI: -1: must be a whole number, 0 to 4294967295"},
		{"", with(`"VNI":1`, `"vni":"1"`), `data: BackendData.VNI: "1": must be a whole number, 0 to 4294967295`},
		{"", with(`{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}`, `[7]`), "data: BackendData: [7]: must be an object"},
		{"", "[]", "value: []: must be an object"},
		{"", with(`"vxlan"`, `{}`), "value: BackendType: {}: must be a string"},
		{"", with(`"10.9.0.1"`, `7`), "value: PublicIP: 7: must be a string without escapes"},
		{"", with(`{"VNI":1`, `{"VNI":16777216`), "data: BackendData: VNI 16777216: must be at most 16777215"},
		{"", with(`9e:e4`, `9f:e4`), "mac: BackendData: VtepMAC 9f:e4:4c:09:b4:8b: must be the MAC of one host"},
		{"", with(`9e:e4:4c:09:b4:8b`, `ff:ff:ff:ff:ff:ff`), "mac: "},
		{"", with(`9e:e4:4c:09:b4:8b`, `00:00:00:00:00:00`), "mac: "},
		{"", with(`9e:e4:4c:09:b4:8b`, `9e:e4:4c:09:b4:8b:00:01`), `mac: BackendData: VtepMAC "9e:e4:4c:09:b4:8b:00:01": must be a MAC`},
		{"10.230.33.0-24&fc00::-64", good, "public-ip: PublicIPv6: the address of the node is required"},
		{"10.230.33.0-24&fc00::-64", with("null", `"ff02::1"`), "public-ip: PublicIPv6: ff02::1: must be the IPv6 address of one host"},
		{"10.230.33.0-24&fc00::-64", with("null", `"::ffff:10.9.0.1"`), "public-ip: "},
		{"10.230.33.0-24&fc00::-64", with("null", `"::1"`), "public-ip: "},
		{"10.230.33.0-24&fc00::-64", with("null", `"fd00::1"`), "data: BackendV6Data: VNI and VtepMAC are required"},
	} {
		if c.key == "" {
			c.key = "10.230.33.0-24"
		}
		_, err := ParseLease(c.key, []byte(c.value))
		var r *Refusal
		if want := `flannel: lease "` + c.key + `": ` + c.want; !errors.As(err, &r) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s %.200s: %v, want %s", c.key, c.value, err, want)
		}
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for r := range reasons {
		if s := r.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("reason %d: %q", r, s)
		}
		seen[r.String()] = true
	}
	if reasons.String() != "invalid" {
		t.Error(reasons.String())
	}
}

// Names may be in any case, and of one that is there twice the last counts, as with flannel, which reads leases with Go's package json, too.
func TestLeaseNames(t *testing.T) {
	want := Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2)}
	for _, v := range []string{
		`{"publicip":"192.0.2.2","BACKENDTYPE":"vxlan","backendData":{"vni":1,"vtepmac":"02:00:00:00:00:02"}}`,
		`{"PublicIP":"192.0.2.9","publicIP":"192.0.2.2","BackendType":"udp","BackendType":"vxlan","BackendData":{"VNI":5,"vni":1,"VtepMAC":"02:00:00:00:00:02"}}`,
	} {
		if l, err := ParseLease("10.3.2.0-24", []byte(v)); err != nil || l.Attrs != want {
			t.Errorf("%s: %+v, %v", v, l, err)
		}
	}
}
