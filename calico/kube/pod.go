package kube

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

type endpointSpec struct {
	Orchestrator       string         `json:"orchestrator"`
	Node               string         `json:"node"`
	Pod                string         `json:"pod"`
	Endpoint           string         `json:"endpoint"`
	ServiceAccountName string         `json:"serviceAccountName,omitempty"`
	IPNetworks         []string       `json:"ipNetworks"`
	Profiles           []string       `json:"profiles"`
	InterfaceName      string         `json:"interfaceName"`
	Ports              []endpointPort `json:"ports,omitempty"`
}

type endpointPort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
}

// Labels of endpoints.
const (
	labelNamespace    = "projectcalico.org/namespace"
	labelOrchestrator = "projectcalico.org/orchestrator"
	labelAccount      = "projectcalico.org/serviceaccount"
	labelName         = "projectcalico.org/name" // behind a prefix

	orchestrator = "k8s"
)

// maxAccount is how long the name of a service account may be that is a label of the resource. The spec has one of any length.
const maxAccount = 62

// pod is a WorkloadEndpoint, but for a pod on the network of the host, or without an address or a node: that is none yet, or no
// longer.
func pod(c *Config, x runtime.Object) []said {
	p := x.(*corev1.Pod)
	nets := podIPs(p)
	if p.Spec.HostNetwork || p.Spec.NodeName == "" || len(nets) == 0 || finished(p) {
		return nil
	}
	m := metadata{Name: endpointName(p.Spec.NodeName, p.Name), Namespace: p.Namespace, Labels: map[string]string{}}
	maps.Copy(m.Labels, p.Labels)
	m.Labels[labelNamespace], m.Labels[labelOrchestrator] = p.Namespace, orchestrator
	s := endpointSpec{
		Orchestrator: orchestrator, Node: p.Spec.NodeName, Pod: p.Name, Endpoint: "eth0", IPNetworks: nets,
		Profiles: []string{"kns." + p.Namespace}, InterfaceName: interfaceName(c.prefix(), p.Namespace, p.Name),
	}
	delete(m.Labels, labelAccount)
	if account := p.Spec.ServiceAccountName; account != "" {
		s.Profiles = append(s.Profiles, accountProfile(p.Namespace, account))
		if s.ServiceAccountName = account; len(account) <= maxAccount {
			m.Labels[labelAccount] = account
		}
	}
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			s.Ports = append(s.Ports, namedPorts(list[i].Ports)...)
		}
	}
	return []said{says(resource.KindWorkload, m, s)}
}

// endpointName is that of an endpoint: dashes are double, but between the parts.
func endpointName(node, pod string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(node) + "-" + orchestrator + "-" + double(pod) + "-eth0"
}

// interfaceName is that of the host's end of a pod's veth pair.
func interfaceName(prefix, namespace, pod string) string {
	sum := sha1.Sum([]byte(namespace + "." + pod))
	return prefix + hex.EncodeToString(sum[:])[:11]
}

// Annotations with the addresses of a pod, by Calico's CNI plugin and that of Amazon.
const (
	annotationIP  = "cni.projectcalico.org/podIP"
	annotationIPs = "cni.projectcalico.org/podIPs"
	annotationAWS = "vpc.amazonaws.com/pod-ips"
)

// podIPs are the addresses of a pod: what a kubelet says, or else what a CNI plugin says, which is earlier.
func podIPs(p *corev1.Pod) (list []string) {
	for _, a := range p.Status.PodIPs {
		list = append(list, a.IP)
	}
	if len(list) > 0 {
		return list
	}
	for _, text := range []string{p.Status.PodIP, p.Annotations[annotationIPs], p.Annotations[annotationIP], p.Annotations[annotationAWS]} {
		if text != "" {
			return strings.Split(text, ",")
		}
	}
	return nil
}

// finished reports whether a pod has no addresses any more, although it says which.
func finished(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		for _, name := range []string{annotationIP, annotationAWS} {
			if text, ok := p.Annotations[name]; ok && text == "" {
				return true
			}
		}
	}
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == "Completed"
}

// namedPorts are those that rules can name.
func namedPorts(ports []corev1.ContainerPort) (list []endpointPort) {
	for _, p := range ports {
		if p.Name == "" || p.ContainerPort < 1 || p.ContainerPort > 65535 {
			continue
		}
		switch p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
			list = append(list, endpointPort{p.Name, string(p.Protocol), p.ContainerPort})
		case "":
			list = append(list, endpointPort{p.Name, string(corev1.ProtocolTCP), p.ContainerPort})
		}
	}
	return list
}

// stripPod is what is read of a pod.
func stripPod(x runtime.Object) runtime.Object {
	p := x.(*corev1.Pod)
	strip := func(list []corev1.Container) (out []corev1.Container) {
		for i := range list {
			if len(list[i].Ports) > 0 {
				out = append(out, corev1.Container{Ports: list[i].Ports})
			}
		}
		return out
	}
	out := &corev1.Pod{ObjectMeta: p.ObjectMeta, Status: corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs}}
	out.ManagedFields = nil
	out.Spec.NodeName, out.Spec.HostNetwork, out.Spec.ServiceAccountName = p.Spec.NodeName, p.Spec.HostNetwork, p.Spec.ServiceAccountName
	out.Spec.Containers, out.Spec.InitContainers = strip(p.Spec.Containers), strip(p.Spec.InitContainers)
	return out
}

type profileSpec struct {
	Ingress       []rule            `json:"ingress,omitempty"`
	Egress        []rule            `json:"egress,omitempty"`
	LabelsToApply map[string]string `json:"labelsToApply"`
}

func accountProfile(namespace, name string) string { return fmt.Sprintf("ksa.%s.%s", namespace, name) }

// namespace is a profile that allows everything behind all policies, and whose labels are those of the namespace.
func namespace(_ *Config, x runtime.Object) []said {
	n := x.(*corev1.Namespace)
	allow := []rule{{Action: "Allow"}}
	return []said{says(resource.KindProfile, metadata{Name: "kns." + n.Name}, profileSpec{allow, allow, labelsOf("pcns.", n.Name, n.Labels)})}
}

// account is a profile without rules, whose labels are those of the service account.
func account(_ *Config, x runtime.Object) []said {
	a := x.(*corev1.ServiceAccount)
	return []said{says(resource.KindProfile, metadata{Name: accountProfile(a.Namespace, a.Name)}, profileSpec{LabelsToApply: labelsOf("pcsa.", a.Name, a.Labels)})}
}

func labelsOf(prefix, name string, labels map[string]string) map[string]string {
	m := map[string]string{}
	for k, v := range labels {
		m[prefix+k] = v
	}
	m[prefix+labelName] = name
	return m
}
