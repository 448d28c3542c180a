//go:build ignore

package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/vxswitch/vxswitch/metrics"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

func main() {
	n, err := node.New(nil)
	check(err)
	t, err := n.Tunnel("vx", node.Tunnel{Local: netip.MustParseAddr("10.0.0.1")})
	check(err)
	seg, err := n.Segment(100, nil)
	check(err)
	check(seg.Join(t, netip.MustParseAddr("10.0.0.2")))
	prometheus.MustRegister(metrics.New(metrics.OfNode(n)))
	http.Handle("/metrics", promhttp.Handler())
	go http.ListenAndServe("127.0.0.1:9100", nil)
	go watch(n)
	tap, err := port.OpenTAP("tap0", nil)
	check(err)
	check(seg.Add(tap, nil))
	fmt.Println("ready")
	check(n.Run(context.Background()))
}

func watch(n *node.Node) {
	events := n.Switch().Events()
	for e, err := events.Next(context.Background()); err == nil; e, err = events.Next(context.Background()) {
		fmt.Println(e.Kind, e.VNI, e.MAC)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
