// Package vectors is the conformance table of the switch and its VTEP: what must be
// on the wire, at the hosts, in the MAC tables and under which drop reason.
//
// Every rule has an id, whose first part says what it is about:
//
//	1  VXLAN (RFC 7348) and its outer headers
//	2  ECN (RFC 6040)
//	3  VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe-13)
//	4  the MAC table: learning, moves, limits
//	5  forwarding, flooding, split horizon
//	6  ARP and ND: suppression and proxy
//	7  the gateway: routing between segments, and out of them
//	8  IP-in-IP (RFC 2003, RFC 2473, RFC 4213)
//	9  MTU and path MTU
//
// A [rule] has rows, each a small network that is sent real bytes. A row says what is given
// (start, pair, trio, bridge; site for a gateway, joined for IP in a tunnel), what is sent
// (Send, send, passes, sentBy), and what is expected (Want, want, reaches, quiet, clean,
// dropped, wantFDB). TestVectors prints id -> rows.
package vectors

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rule is one clause that can be kept or broken by itself.
type rule struct {
	id   string
	text string
}

// A row is one vector of a rule. Exactly one of its functions is set.
type row struct {
	id, name string
	wire     func(l *lab)                   // over a memory network; run once for each address family
	local    func(l *lab)                   // without an underlay; run once
	sockets  func(t *testing.T, local side) // over real sockets on loopback, for each address family it is meant for
	only     string                         // "IPv4" or "IPv6": the one family the row is about
}

// runs returns the address families a row is run for.
func (r *row) runs() []string {
	switch {
	case r.local != nil:
		return []string{"local"}
	case r.only != "":
		return []string{r.only}
	}
	return []string{"IPv4", "IPv6"}
}

func allRows() []row {
	return slices.Concat(receiveRows, unfinishedRows(), vlanRows, orderRows, headerRows, peerRows, sendRows, inheritRows, hashRows(), udpRows, rawRows, ecnRows(), tunnelECNRows(), gpeRows, ipipRows,
		entryRows, ageRows, moveRows, freezeRows, lockedRows, pinRows, limitRows, flushRows, runtimeRows,
		floodRows, stormRows(), horizonRows, isolatedRows(), vtepRows(), replicationRows, multicastRows, specialRows, neighbourRows, gatewayRows, bigRows, pathRows, tunnelOverheadRows())
}

func TestVectors(t *testing.T) {
	count := map[string]int{}
	seen := map[string]bool{}
	for _, r := range allRows() {
		for _, family := range r.runs() {
			name := fmt.Sprintf("%s/%s/%s", r.id, r.name, family)
			if seen[name] {
				t.Errorf("two rows are called %s", name)
			}
			seen[name] = true
			count[r.id]++
			t.Run(name, func(t *testing.T) {
				if r.sockets != nil {
					r.sockets(t, sides[family])
					return
				}
				mem.Run(t, nil, func(f *mem.Fabric) {
					l := &lab{Fabric: f, ip6: family == "IPv6"}
					if r.local != nil {
						r.local(l)
					} else {
						r.wire(l)
					}
				})
			})
		}
	}
	checkRules(t, count)
}

// checkRules fails unless each rule has rows, and prints the list.
func checkRules(t *testing.T, count map[string]int) {
	var b strings.Builder
	total, known := 0, map[string]bool{}
	for _, r := range rules {
		if known[r.id] {
			t.Errorf("two rules are called %s", r.id)
		}
		known[r.id] = true
		n := count[r.id]
		total += n
		if n == 0 && (runtime.GOOS == "linux" || len(udpRows) > 0) {
			t.Errorf("%s has no rows: %s", r.id, r.text)
		}
		fmt.Fprintf(&b, "%-28s %3d rows\n", r.id, n)
	}
	for id := range count {
		check.True(t, known[id], "rows of %s, which is no rule", id)
	}
	t.Logf("id -> rows, %d rows of %d rules\n%s", total, len(rules), b.String())
}
