package node

import (
	"context"

	"github.com/vxswitch/vxswitch/policy"
)

// A loggedBy is a packet on its way from a rule with the action Log to the node's log.
type loggedBy struct {
	policy string
	policy.Logged
}

// noteLogged has packets that rules of a policy log written to the node's log. Workers do not wait for that: what finds no room is only
// counted.
func (n *Node) noteLogged(name string, p *policy.Policy) {
	p.WatchLog(func(x policy.Logged) {
		select {
		case n.logged <- loggedBy{name, x}:
		default:
		}
	})
}

// writeLogged writes them.
func (n *Node) writeLogged(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-n.logged:
			args := []any{
				"policy", x.policy, "rule", x.Rule, "direction", x.Direction.String(), "vni", x.VNI, "from", n.sw.Name(x.From),
				"srcMAC", x.SrcMAC.String(), "dstMAC", x.DstMAC.String(),
			}
			if t := x.Tuple; t.Src.IsValid() {
				args = append(args, "src", t.Src, "dst", t.Dst, "protocol", t.Protocol, "srcPort", t.SrcPort, "dstPort", t.DstPort)
			} else {
				args = append(args, "etherType", x.EtherType)
			}
			n.log.Info("a rule matches", args...)
		}
	}
}
