// Vxswitch-cni is a CNI plugin (specification 1.1) that attaches containers to segments of vxswitchd.
//
//	{"cniVersion": "1.1.0", "name": "pods", "plugins": [
//	  {"type": "vxswitch-cni", "vni": 100, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}}
//	]}
//
// A container runtime starts it, with its configuration on standard input. The plugin makes the interface of the container and
// adds it to the node over the node's control socket; the addresses are those of the IPAM plugin.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/vxswitch/vxswitch/cmd/internal/version"
)

const usage = `Usage: vxswitch-cni | -version

A CNI plugin that attaches containers to segments of vxswitchd. Container runtimes start it. Put it into their
folder of plugins, /opt/cni/bin, and a network into /etc/cni/net.d, such as pods.conflist.

  vni       segment of vxswitchd, in its file (required)
  port      veth, the default, or tap
  mtu       default what fits the tunnels of the segment
  socket    control socket of vxswitchd, default /run/vxswitch/vxswitchd.sock
  ipMasq    has no effect; the plugin flannel adds it
  ipam      plugin for addresses and its keys; without one the interface has none
  dns       for the result, default that of the IPAM plugin
  capabilities  {"mac": true} lets the runtime choose the MAC

Examples:
  {"cniVersion": "1.1.0", "name": "pods", "plugins": [
    {"type": "vxswitch-cni", "vni": 100, "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}}
  ]}
`

// patience is how long a command may take.
const patience = time.Minute

func main() {
	if os.Getenv("CNI_COMMAND") == "" { // by hand
		os.Exit(byHand(os.Args[1:]))
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add: func(a *skel.CmdArgs) error {
			r, err := add(ctx, a)
			if err != nil {
				return err
			}
			return r.Print()
		},
		Del:    func(a *skel.CmdArgs) error { return del(ctx, a) },
		Check:  func(a *skel.CmdArgs) error { return check(ctx, a) },
		GC:     func(a *skel.CmdArgs) error { return gc(ctx, a) },
		Status: func(a *skel.CmdArgs) error { return status(ctx, a) },
	}, cniversion.All, "")
}

// byHand answers who starts the program without a runtime. It returns the exit status.
func byHand(args []string) int {
	switch {
	case len(args) == 1 && (args[0] == "-version" || args[0] == "--version"):
		fmt.Println(version.Of("vxswitch-cni"))
		return 0
	case len(args) == 1 && (args[0] == "-help" || args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "vxswitch-cni: unexpected argument %q\n", args[0])
	default:
		fmt.Fprint(os.Stderr, usage)
	}
	return 2
}
