package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
)

// table is the name of the nft table.
const table = "vxflanneld"

// masquerade returns the rules, for nft -f: what leaves the network gets the address of the host, and so does what comes from
// elsewhere for pods of other nodes, so that the answers come back this way. Pods talk to pods as they are.
func masquerade(n *flannel.Network, own flannel.Subnet, random bool) string {
	verb := "masquerade fully-random"
	if !random {
		verb = "masquerade"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n\tchain postrouting {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n", table)
	for _, x := range []struct {
		ip, groups      string
		network, subnet netip.Prefix
	}{{"ip", "224.0.0.0/4", n.IPv4.Network, own.IPv4}, {"ip6", "ff00::/8", n.IPv6.Network, own.IPv6}} {
		if !x.network.IsValid() {
			continue
		}
		fmt.Fprintf(&b, "\t\t%[1]s saddr %[2]v %[1]s daddr %[2]v return\n", x.ip, x.network)
		fmt.Fprintf(&b, "\t\t%[1]s saddr %[2]v %[1]s daddr != %[3]s %[4]s\n", x.ip, x.network, x.groups, verb)
		fmt.Fprintf(&b, "\t\t%[1]s daddr %[2]v return\n", x.ip, x.subnet)
		fmt.Fprintf(&b, "\t\t%[1]s saddr != %[2]v %[1]s daddr %[2]v %[3]s\n", x.ip, x.network, verb)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// noMasquerade removes the rules, if they are there.
const noMasquerade = "table inet " + table + "\ndelete table inet " + table + "\n"

// masqueraded reports whether the process that has written a subnet file masqueraded.
func masqueraded(file []byte) bool { return bytes.Contains(file, []byte("FLANNEL_IPMASQ=true\n")) }

// dropRules removes the rules of a former process, if the program nft is there.
func (d *Daemon) dropRules(ctx context.Context) {
	if err := nft(ctx, noMasquerade); err != nil && !errors.Is(err, exec.ErrNotFound) && ctx.Err() == nil {
		d.log.Info("flannel: rules of a former process", "err", err)
	}
}

// nft runs the program.
func nft(ctx context.Context, rules string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "nft", "-f", "-")
	c.Stdin = strings.NewReader(rules)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
