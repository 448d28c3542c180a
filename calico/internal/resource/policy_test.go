package resource

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

// Values of policy as calicoctl and Calico's CNI plugin of v3.33 write them. Selectors are shown as their texts.
func TestPolicyValues(t *testing.T) {
	for _, c := range []struct {
		key         Key
		value, want string
	}{
		{Key{KindTier, "t"}, `{"kind":"Tier","spec":{"order":100,"defaultAction":"Pass"}}`, `{Order:100 Pass:true}`},
		{Key{KindTier, "t"}, `{"spec":{}}`, `{Order:+Inf Pass:false}`},
		{Key{KindTier, "t"}, `{"spec":{"defaultAction":"Whatever"}}`, `{Order:+Inf Pass:false}`},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{"tier":"t","order":-1.5,"selector":"has(a)","types":["Ingress"],"preDNAT":true,"applyOnForward":true}}`,
			`{Tier:t Order:-1.5 Selector:has(a) Ingress:[] Egress:<nil> Host:true Forward:true}`},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{}}`, `{Tier:default Order:+Inf Selector:all() Ingress:[] Egress:[] Host:false Forward:false}`},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{"namespaceSelector":"a == 'b' || all()","serviceAccountSelector":"has(c)","types":["Egress"],"doNotTrack":true}}`,
			`{Tier:default Order:+Inf Selector:(pcns.a == "b" || has(projectcalico.org/namespace)) && has(pcsa.c) Ingress:<nil> Egress:[] Host:true Forward:false}`},
		{Key{KindPolicy, "ns/p"}, `{"spec":{"selector":"a == 'b' || has(c)","serviceAccountSelector":"x in {'y'}","types":["Ingress"]}}`,
			`{Tier:default Order:+Inf Selector:(a == "b" || has(c)) && projectcalico.org/namespace == "ns" && pcsa.x in {"y"} Ingress:[] Egress:<nil> Host:false Forward:false}`},
		{Key{KindProfile, "p"}, `{"spec":{"labelsToApply":{"a":"b"}}}`, `{Labels:map[a:b] Ingress:[] Egress:[]}`},
		{Key{KindGlobalSet, "s"}, `{"metadata":{"labels":{"a":"b"}},"spec":{"nets":["10.1.2.3/8","fd00::1"]}}`, `{Labels:map[a:b] Profile: Nets:[10.0.0.0/8 fd00::1/128] Wrong:[]}`},
		{Key{KindSet, "ns/s"}, `{"spec":{"nets":["::ffff:10.0.0.1"]}}`,
			`{Labels:map[projectcalico.org/namespace:ns] Profile:kns.ns Nets:[] Wrong:[spec.nets "::ffff:10.0.0.1": must be a network, and is left out]}`},
		{Key{KindWorkload, "ns/a--b-k8s-p-eth0"}, `{"metadata":{"labels":{"x":"y","pcns.x":"y","pcsa.x":"y","projectcalico.org/namespace":"other"}},"spec":{"node":"a-b","interfaceName":"cali1","orchestrator":"k8s","serviceAccountName":"sa","ipNetworks":["10.0.0.1/32","fd00::1"],"mac":"02:00:00:00:00:01","allowSpoofedSourcePrefixes":["192.0.2.1/24","fd01::/64"],"profiles":["kns.ns"],"ports":[{"name":"http","protocol":"TCP","port":80},{"name":"","protocol":"TCP","port":1},{"name":"x","protocol":47,"port":1},{"name":"s","protocol":132,"port":2,"hostPort":3,"hostIP":""}]}}`,
			`{Node:a-b Interface:cali1 Labels:map[projectcalico.org/namespace:ns projectcalico.org/serviceaccount:sa x:y] Profiles:[kns.ns] Addrs:[10.0.0.1 fd00::1] Ports:[{Name:http Protocol:6 Port:80} {Name:s Protocol:132 Port:2}] MAC:02:00:00:00:00:01 Spoofs:[192.0.2.0/24 fd01::/64] NotCarried:[]}`},
		{Key{KindHost, "h"}, `{"metadata":{"labels":{"x":"y"}},"spec":{"node":"a","interfaceName":"*","expectedIPs":["10.0.0.1"],"profiles":["p"],"ports":[{"name":"ssh","protocol":"TCP","port":22}]}}`,
			`{Node:a Interface:* Labels:map[x:y] Profiles:[p] Addrs:[10.0.0.1] Ports:[{Name:ssh Protocol:6 Port:22}] MAC:00:00:00:00:00:00 Spoofs:[] NotCarried:[]}`},
		{Key{KindFelix, "default"}, `{"spec":{"allowIPIPPacketsFromWorkloads":true,"workloadSourceSpoofing":"any","vxlanVNI":4097,"vxlanPort":4444,"ipipEnabled":true}}`, `{IPIP:true VXLAN:<nil> Spoofing:true VNI:4097 Port:4444}`},
		{Key{KindFelix, "node.a"}, `{"spec":{"allowVXLANPacketsFromWorkloads":false,"workloadSourceSpoofing":"Disabled"}}`, `{IPIP:<nil> VXLAN:false Spoofing:false VNI:0 Port:0}`},
		{Key{KindStagedPolicy, "ns/p"}, `whatever`, `{}`},
	} {
		got, err := Parse(c.key, []byte(c.value))
		if err != nil {
			t.Errorf("%v: %v", c.key, err)
			continue
		}
		text := strings.TrimPrefix(fmt.Sprintf("%+v", got), "&")
		switch p := got.(type) {
		case *Policy:
			text = fmt.Sprintf("{Tier:%s Order:%v Selector:%s Ingress:%v Egress:%v Host:%v Forward:%v}", p.Tier, p.Order, p.Selector, shown(p.Ingress), shown(p.Egress), p.Host, p.Forward)
		case *Felix:
			text = fmt.Sprintf("{IPIP:%s VXLAN:%s Spoofing:%s VNI:%d Port:%d}", said(p.IPIP), said(p.VXLAN), said(p.Spoofing), p.VXLANVNI, p.VXLANPort)
		case *Profile:
			text = fmt.Sprintf("{Labels:%v Ingress:%v Egress:%v}", p.Labels, shown(p.Ingress), shown(p.Egress))
		}
		if text != c.want {
			t.Errorf("%v: %s, want %s", c.key, text, c.want)
		}
	}
}

func said(b *bool) string {
	if b == nil {
		return "<nil>"
	}
	return fmt.Sprint(*b)
}

func shown(r *Rules) any {
	if r == nil {
		return "<nil>"
	}
	return *r
}

// A rule with all there is.
func TestRuleValue(t *testing.T) {
	v, err := Parse(Key{KindPolicy, "ns/p"}, []byte(`{"spec":{"ingress":[{"action":"Allow"},{"action":"Deny","ipVersion":4,"protocol":"TCP","notProtocol":17,"metadata":{"annotations":{"a":"b"}},
		"source":{"nets":["10.0.0.1/8"],"notNets":["10.1.0.0/16"],"selector":"has(a) || has(b)","notSelector":"has(c)","ports":[80,"81:82","http"],"notPorts":["90","dns"]},
		"destination":{"serviceAccounts":{"names":["y","x"],"selector":"r == 's'"},"namespaceSelector":"all()"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	rules := *v.(*Policy).Ingress
	if len(rules) != 2 || rules[1].Field != "spec.ingress[1]" {
		t.Fatalf("%+v", rules)
	}
	src, dst := rules[1].Src.Selector, rules[1].Dst.Selector
	if want := `projectcalico.org/namespace == "ns" && (has(a) || has(b)) && !has(c)`; src.String() != want {
		t.Errorf("source %s, want %s", src, want)
	}
	if want := `has(projectcalico.org/namespace) && pcsa.r == "s" && projectcalico.org/serviceaccount in {"x", "y"}`; dst.String() != want {
		t.Errorf("destination %s, want %s", dst, want)
	}
	want := PolicyRule{Field: "spec.ingress[1]", Action: Deny, IPVersion: 4, Protocol: 6, NotProtocol: 17, Dst: Entity{Selector: dst},
		Src: Entity{Nets: []netip.Prefix{network("10.0.0.0/8")}, NotNets: []netip.Prefix{network("10.1.0.0/16")}, Selector: src,
			Ports: []policy.PortRange{{First: 80, Last: 80}, {First: 81, Last: 82}}, Names: []string{"http"}, NotPorts: []policy.PortRange{{First: 90, Last: 90}}, NotNames: []string{"dns"}}}
	if !reflect.DeepEqual(rules[1], want) {
		t.Errorf("%+v, want %+v", rules[1], want)
	}
	if p := v.(*Policy); !math.IsInf(p.Order, 1) || !p.Selector.Matches(selector.Labels{labelNamespace: "ns"}) {
		t.Errorf("%+v", p)
	}
}

// wantWrong wants a value to have an error with some words.
func wantWrong(t *testing.T, key Key, value, want string) {
	t.Helper()
	if v, err := Parse(key, []byte(value)); err == nil {
		t.Errorf("%v %.100s: %+v, want %s", key, value, v, want)
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("%v %.100s: %v, want %s", key, value, err, want)
	}
}

func TestWrongPolicyValues(t *testing.T) {
	for _, c := range []struct {
		key         Key
		value, want string
	}{
		{Key{KindTier, "t"}, `{"spec":{"order":"1"}}`, "spec.order: a string: must be a number"},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{"selector":"a = b"}}`, "spec.selector: selector"},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{"namespaceSelector":"a = b"}}`, "spec.namespaceSelector: selector"},
		{Key{KindPolicy, "ns/p"}, `{"spec":{"serviceAccountSelector":"a = b"}}`, "spec.serviceAccountSelector: selector"},
		{Key{KindPolicy, "ns/p"}, `{"spec":{"types":["ingres"]}}`, `spec.types "ingres": must be one of Ingress, Egress`},
		{Key{KindPolicy, "ns/p"}, `{"spec":{"ingress":{}}}`, "spec.ingress: an object: must be a list"},
		{Key{KindProfile, "p"}, `{"spec":{"labelsToApply":{"a":1}}}`, "a number: must be a string"},
		{Key{KindGlobalSet, "s"}, `{"metadata":{"labels":[]}}`, "metadata.labels: an array: must be an object"},
		{Key{KindGlobalSet, "s"}, `{"spec":{"nets":[1]}}`, "spec.nets: a number: must be a string"},
		{Key{KindGlobalPolicy, "p"}, `{"spec":"x"}`, "spec: a string: must be an object"},
		{Key{KindGlobalPolicy, "p"}, `{"spec":{"doNotTrack":1}}`, "spec.doNotTrack: a number: must be true or false"},
		{Key{KindGlobalPolicy, "p"}, `{spec`, "must be JSON: invalid character"},
		{Key{KindWorkload, "ns/a--b-k8s-p-eth0"}, `{"spec":{"node":"a"}}`, `spec.node "a": must be that of the key`},
		{Key{KindWorkload, "ns/a-k8s-p-eth0"}, `{"spec":{"node":"a","ipNetworks":["10.0.0.1%x"]}}`, "spec.ipNetworks"},
		{Key{KindWorkload, "ns/a-k8s-p-eth0"}, `{"spec":{"node":"a","ipNetworks":["10.0.0.1/24"]}}`, `spec.ipNetworks "10.0.0.1/24": must be an address, or one with /32 or /128`},
		{Key{KindWorkload, "ns/a-k8s-p-eth0"}, `{"spec":{"node":"a","ports":[{"name":"x","protocol":"XYZ","port":1}]}}`, `spec.ports.protocol "XYZ": must be 1 to 255, TCP`},
		{Key{KindFelix, "default"}, `{"spec":{"vxlanPort":65536}}`, `spec.vxlanPort "65536": must be 1 to 65535`},
		{Key{KindFelix, "default"}, `{"spec":{"vxlanVNI":16777216}}`, `spec.vxlanVNI "16777216": must be 1 to 16777215`},
		{Key{KindFelix, "default"}, `{"spec":{"workloadSourceSpoofing":"All"}}`, `spec.workloadSourceSpoofing "All": must be Any or Disabled`},
		{Key{KindWorkload, "ns/a-k8s-p-eth0"}, `{"spec":{"node":"a","mac":"01:00:00:00:00:01"}}`, `spec.mac "01:00:00:00:00:01": must be the MAC of one host`},
		{Key{KindWorkload, "ns/a-k8s-p-eth0"}, `{"spec":{"node":"a","allowSpoofedSourcePrefixes":["x"]}}`, `spec.allowSpoofedSourcePrefixes "x": must be a network`},
		{Key{KindHost, "h"}, `{"spec":{"expectedIPs":["x"]}}`, `spec.expectedIPs "x": must be an IPv4 or IPv6 address`},
		{Key{KindHost, "h"}, strings.Repeat(" ", etcdMost+1), "must be at most 2097152"},
	} {
		wantWrong(t, c.key, c.value, c.want)
	}
	if list := PolicyPrefixes(); len(list) != int(Kinds-KindTier) || list[0] != resources+"tiers/" || strings.Contains(fmt.Sprint(Prefixes("a")), "polic") {
		t.Errorf("prefixes %v, of policy %v", Prefixes("a"), list)
	}
}
