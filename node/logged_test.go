package node

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A text is written and read by several goroutines.
type lockedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *lockedText) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *lockedText) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// What a rule with Log matches is in the log of the node; as long as nobody writes it, packets do not wait.
func TestLoggedPackets(t *testing.T) {
	var text lockedText
	n := check.Must(New(&Options{Log: slog.New(slog.NewTextHandler(&text, nil))}))(t)
	cfg := check.Must(Parse([]byte(`{"policies": [{"name": "p", "stateless": true, "tiers": [{"name": "first", "rules": [{"name": "seen", "action": "log"}], "default": "allow"}]}]}`)))(t)
	check.OK(t, n.Apply(cfg))
	f := frame.Make(append(bytes.Repeat([]byte{2}, 12), 0x88, 0xb5, 1, 2, 3, 4))
	s := n.Policies()["p"].Egress()
	for tick := range frame.Tick(2 * cap(n.logged)) {
		if v := s.Process(&f, frame.At{Tick: tick, Worker: 1}); v != frame.Continue {
			t.Fatal(v)
		}
	}
	check.Equal(t, "counted", n.Policies()["p"].Stats().Rules["seen"].Packets, uint64(2*cap(n.logged)))
	stop := check.Run(t, n.Run)
	fake.Until(t, "all is logged", func() bool { return strings.Count(text.String(), "a rule matches") >= cap(n.logged) })
	stop()
	check.Equal(t, "lines", strings.Count(text.String(), "a rule matches"), cap(n.logged))
	for _, want := range []string{"policy=p", "rule=seen", "direction=egress", "srcMAC=02:02:02:02:02:02", "etherType=34997"} {
		check.True(t, strings.Contains(text.String(), want), "no %s in %s", want, text.String())
	}
}

// Mistakes in tiers are told of with their place in the file; a gateway's policy has no MACs in tiers either.
func TestTierMistakes(t *testing.T) {
	for _, x := range [][2]string{
		{`{"policies": [{"name": "p", "tiers": [{"rules": [{"notSrc": ["10.0.0.1/8"]}]}]}]}`, `policies[0].tiers[0].rules[0].notSrc[0]: `},
		{`{"policies": [{"name": "p", "tiers": [{"rules": []}]}]}`, `policies[0].tiers[0].name: `},
		{`{"policies": [{"name": "p", "portSets": {"web": ["10.0.0.1,icmp:8"]}}]}`, `policies[0].portSets.web[0]: `},
		{`{"policies": [{"name": "p", "portSets": {"web": []}, "rules": [{"dstPortSets": ["dns"]}]}]}`, `policies[0].rules[0].dstPortSets[0]: "dns"`},
		{`{"vrfs": [{"name": "v"}], "policies": [{"name": "p", "tiers": [{"name": "t", "rules": [{"dstMACs": ["02:00:00:00:00:09"]}]}]}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "policy": "p", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"]}}]}`,
			`segments[0].gateway.policy: "p": has rules with srcMACs or dstMACs`},
	} {
		if _, err := Parse([]byte(x[0])); err == nil || !strings.Contains(err.Error(), x[1]) {
			t.Errorf("%s: %v, want %s", x[0], err, x[1])
		}
	}
}
