package flannel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// oracle calls f with each question that flannel v0.28.10 was asked, and its answer, nil for what it refused. How the
// answers were made is in testdata/oracle/oracle.go.txt.
func oracle(t *testing.T, name string, f func(question string, answer json.RawMessage)) {
	t.Helper()
	lines := func(file string) (list []json.RawMessage) {
		b := check.Must(os.ReadFile("testdata/oracle/" + name + file))(t)
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			list = append(list, bytes.Clone(s.Bytes()))
		}
		return list
	}
	questions, answers := lines(".questions"), lines(".answers")
	if len(questions) != len(answers) || len(questions) < 100 {
		t.Fatalf("%d questions, %d answers", len(questions), len(answers))
	}
	for i, a := range answers {
		var q string
		check.OK(t, json.Unmarshal(questions[i], &q))
		if string(a) == "null" {
			a = nil
		}
		f(q, a)
	}
}

// What we accept flannel reads as we do; what flannel refuses we refuse, and of the rest what we refuse is in a list.
func TestNetworkOracle(t *testing.T) {
	accepted, stricter := 0, map[string]int{}
	oracle(t, "network", func(q string, want json.RawMessage) {
		n, err := ParseNetwork([]byte(q))
		switch {
		case err != nil && want != nil:
			stricter[networkCause(t, q, err)]++
		case err == nil && want == nil:
			t.Errorf("%s: %v, but flannel refuses it", q, n)
		case err == nil:
			accepted++
			got := map[string]any{"type": n.Backend.Type, "nft": n.NFTables}
			for name, r := range map[string]Range{"v4": n.IPv4, "v6": n.IPv6} {
				if r.IsValid() {
					got[name] = fmt.Sprintf("%v %v %v %d", r.Network, r.First.Addr(), r.Last.Addr(), r.Len())
				}
			}
			if b, _ := json.Marshal(got); !bytes.Equal(b, bytes.ToLower(want)) && !bytes.Equal(b, want) {
				t.Errorf("%s: %s, flannel says %s", q, b, want)
			}
		}
	})
	t.Logf("%d accepted; refused though flannel accepts: %v", accepted, stricter)
}

func TestKeyOracle(t *testing.T) {
	accepted, stricter := 0, map[Reason]int{}
	oracle(t, "key", func(q string, want json.RawMessage) {
		s, err := ParseKey(q)
		switch {
		case err != nil && want != nil:
			var r *Refusal
			if errors.As(err, &r) {
				stricter[r.Reason]++
			}
			if r == nil || r.Reason != BadKey && r.Reason != HostBits {
				t.Errorf("%q: %v", q, err)
			}
		case err == nil && want == nil:
			t.Errorf("%q: %v, but flannel refuses it", q, s)
		case err == nil:
			accepted++
			four := "0.0.0.0/0"
			if s.IPv4.IsValid() {
				four = s.IPv4.String()
			}
			if s.IPv6.IsValid() {
				four += " " + s.IPv6.String()
			}
			if b, _ := json.Marshal(four); !bytes.Equal(b, want) {
				t.Errorf("%q: %s, flannel says %s", q, b, want)
			}
			if s.Key() != q {
				t.Errorf("%q is written %q", q, s.Key())
			}
		}
	})
	t.Logf("%d accepted; refused though flannel accepts: %v", accepted, stricter)
}

// Of values flannel's answer is what it writes after it has read them.
func TestValueOracle(t *testing.T) {
	accepted, same, stricter := 0, 0, map[Reason]int{}
	oracle(t, "value", func(q string, want json.RawMessage) {
		a, err := parseAttrs("key", []byte(q))
		switch {
		case err != nil && want != nil:
			var r *Refusal
			if errors.As(err, &r) {
				stricter[r.Reason]++
			}
			if r == nil || r.Reason == BadValue && !otherFamily(q) {
				t.Errorf("%s: %v, but flannel accepts it", q, err)
			}
		case err == nil && want == nil:
			t.Errorf("%s: %+v, but flannel refuses it", q, a)
		case err == nil:
			accepted++
			var text string
			check.OK(t, json.Unmarshal(want, &text))
			if b := a.Value(); string(b) == text {
				same++
			} else if x, err := parseAttrs("key", []byte(text)); err != nil || x != a {
				t.Errorf("%s: %+v, but as flannel writes it %+v, %v", q, a, x, err)
			}
		}
	})
	t.Logf("%d accepted, %d of them written as flannel does; refused though flannel accepts: %v", accepted, same, stricter)
}

// otherFamily reports whether a value has an address in a form that flannel takes for one of the other family.
func otherFamily(q string) bool {
	var v struct{ PublicIP, PublicIPv6 string }
	if json.Unmarshal([]byte(q), &v) != nil {
		return true
	}
	a, err := netip.ParseAddr(v.PublicIP)
	return err != nil || !a.Is4()
}

// networkCause returns the part of an error that says why a network is refused that flannel accepts at first.
func networkCause(t *testing.T, q string, err error) string {
	for _, cause := range []string{
		"which is SubnetMax",     // no node would get a subnet
		"a network of hosts",     // multicast, loopback, 0.0.0.0/2
		"are both off",           // flannel ends a little later
		"the name of a backend",  // likewise
		"an IPv4 prefix such as", // a length with leading zeros
	} {
		if strings.Contains(err.Error(), cause) {
			return cause
		}
	}
	t.Errorf("%s: %v, but flannel accepts it", q, err)
	return "other"
}
