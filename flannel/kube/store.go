package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vxswitch/vxswitch/flannel"
)

// A Store is the [flannel.Store] in the nodes of Kubernetes.
type Store struct {
	cfg    Config
	names  names
	client *client

	open  context.Context // ends with Close
	close context.CancelFunc

	mu      sync.Mutex
	node    string            // the name of this node, "" if it is not known yet
	uid     types.UID         // and who it is: another one may get its name
	written flannel.NodeLease // what it said when it was written last
	version string            // the newest that was seen of any node: nothing older is of use
}

var _ flannel.Store = (*Store)(nil)

// New makes a store. It connects when it is used.
func New(cfg *Config) (*Store, error) {
	if cfg == nil {
		cfg = new(Config)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	return newStore(cfg, a.client()), nil
}

func newStore(cfg *Config, c *client) *Store {
	s := &Store{cfg: *cfg, names: newNames(cfg.prefix()), client: c, node: cfg.Node}
	s.cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	s.cfg.NetworkFile = cmp.Or(cfg.NetworkFile, DefaultNetworkFile)
	s.open, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends all calls. The lease stays.
func (s *Store) Close() error {
	s.close()
	s.client.close()
	return nil
}

// call returns a context for one call.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	stop := context.AfterFunc(s.open, cancel)
	return ctx, func() { stop(); cancel() }
}

// wrap says which call has failed.
func (s *Store) wrap(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.open.Err() != nil:
		err = net.ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer from %s: %w", s.client.host, context.DeadlineExceeded)
	}
	return fmt.Errorf("kube: %s: %w", what, err)
}

// Network implements [flannel.Store].
func (s *Store) Network(ctx context.Context) (*flannel.Network, error) {
	if err := cmp.Or(ctx.Err(), s.open.Err()); err != nil {
		return nil, s.wrap("network", err)
	}
	from, b, err := s.cfg.NetworkFile, []byte(nil), error(nil)
	if s.cfg.ConfigMap == "" {
		b, err = os.ReadFile(from)
	} else {
		from = s.cfg.ConfigMap
		b, err = s.configMap(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) || apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", flannel.ErrNoNetwork, err)
	}
	if err != nil {
		return nil, s.wrap("network: "+from, err)
	}
	return flannel.ParseNetwork(b)
}

// configMap reads the network from a ConfigMap.
func (s *Store) configMap(ctx context.Context) ([]byte, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	const key = "net-conf.json"
	namespace, name, _ := strings.Cut(s.cfg.ConfigMap, "/")
	m, err := s.client.configMaps(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	text, ok := m.Data[key]
	if !ok {
		return nil, fmt.Errorf("it has no %s: %w", key, fs.ErrNotExist)
	}
	return []byte(text), nil
}

// get reads this node.
func (s *Store) get(ctx context.Context) (*corev1.Node, error) {
	s.mu.Lock()
	name := s.node
	s.mu.Unlock()
	if name == "" {
		namespace, pod, _ := strings.Cut(s.cfg.Pod, "/")
		p, err := s.client.pods(ctx, namespace, pod)
		if err != nil {
			return nil, err
		}
		if name = p.Spec.NodeName; name == "" {
			return nil, fmt.Errorf("pod %s: it has no node", s.cfg.Pod)
		}
		s.mu.Lock()
		s.node = name
		s.mu.Unlock()
	}
	return s.client.nodes.Get(ctx, name, metav1.GetOptions{})
}

// PublicIPs returns the addresses that an operator has given this node by the annotations node-public-ip and node-public-ipv6,
// invalid for none.
func (s *Store) PublicIPs(ctx context.Context) (ipv4, ipv6 netip.Addr, err error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	n, err := s.get(ctx)
	if err == nil {
		ipv4, ipv6, err = addresses(n, s.names.nodeIP, s.names.nodeIP6)
	}
	return ipv4, ipv6, s.wrap("public addresses", err)
}

// tries is how often a node that others change meanwhile is written.
const tries = 10

// Acquire implements [flannel.Store]. The subnet is that of the node's pod CIDRs, in the families of the network: Previous
// and the network's SubnetLen, SubnetMin and SubnetMax mean nothing here. Without pod CIDRs there is an error, and the call may be
// made again. A zero MAC stands for that in the node's annotations, whatever public address is there.
func (s *Store) Acquire(ctx context.Context, n *flannel.Network, r flannel.Request) (own *flannel.Own, err error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	for range tries {
		if own, err = s.try(ctx, n, r); !apierrors.IsConflict(err) {
			return own, s.wrap("acquire", err)
		}
	}
	return nil, s.wrap("acquire", fmt.Errorf("%w: %w", flannel.ErrTaken, err))
}

func (s *Store) try(ctx context.Context, n *flannel.Network, r flannel.Request) (*flannel.Own, error) {
	node, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	is, _ := s.names.lease(node)
	subnet, err := is.Subnet(node.Name)
	if err != nil {
		return nil, err
	}
	if !n.IPv4.IsValid() {
		subnet.IPv4 = netip.Prefix{}
	}
	if !n.IPv6.IsValid() {
		subnet.IPv6 = netip.Prefix{}
	}
	if !n.Contains(subnet) {
		return nil, fmt.Errorf("node %s: pod CIDRs %s: must be in the network %v, one of each of its families", node.Name, is.PodCIDRs, n)
	}
	var former []flannel.Lease
	if l, err := is.Lease(node.Name); err == nil {
		former = append(former, l)
	}
	attrs, err := r.Complete(n, former...)
	if err != nil {
		return nil, err
	}
	want := attrs.Node()
	four, six, err := addresses(node, s.names.overwrite, s.names.overwrite6)
	if err != nil {
		return nil, err
	}
	if four.IsValid() && n.IPv4.IsValid() {
		want.PublicIP = four.String()
	}
	if six.IsValid() && n.IPv6.IsValid() {
		want.PublicIPv6 = six.String()
	}
	if changes := s.names.changes(node, want); len(changes) > 0 {
		s.wrote(node, merged(is, want)) // before it is: a watch may be faster than the answer, or the answer lost
		if node, err = s.annotate(ctx, node, changes); err != nil {
			return nil, err
		}
	}
	now, _ := s.names.lease(node)
	s.wrote(node, now)
	return &flannel.Own{Lease: flannel.Lease{Subnet: subnet, Attrs: attrs}, Record: s.record(node, now)}, nil
}

// wrote notes what this node says.
func (s *Store) wrote(n *corev1.Node, l flannel.NodeLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uid, s.written, s.version = n.UID, l, n.ResourceVersion
}

// annotate changes annotations of a node that is as it was read. nil removes one. The permission is that of flanneld: patch nodes/status.
func (s *Store) annotate(ctx context.Context, n *corev1.Node, changes map[string]any) (*corev1.Node, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion, "annotations": changes}})
	if err != nil {
		return nil, err
	}
	return s.client.nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// record returns the record of a lease.
func (s *Store) record(n *corev1.Node, l flannel.NodeLease) flannel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, _ := strconv.ParseInt(n.ResourceVersion, 10, 64)
	return flannel.Record{Key: n.Name, Node: &l, Created: n.CreationTimestamp.Unix(), Revision: revision, Ours: n.Name == s.node && n.UID == s.uid && l == s.written}
}

// mine reads this node, and returns an error that wraps ErrLost if its lease is not that of own.
func (s *Store) mine(ctx context.Context, own *flannel.Own) (*corev1.Node, error) {
	n, err := s.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %w", flannel.ErrLost, err)
	}
	if err != nil {
		return nil, err
	}
	l, is := s.names.lease(n)
	if !is || n.Name != own.Record.Key || own.Record.Node == nil || l != *own.Record.Node || !s.record(n, l).Ours {
		return nil, fmt.Errorf("node %s: somebody else has written %.300s: %w", n.Name, &l, flannel.ErrLost)
	}
	return n, nil
}

// Renew implements [flannel.Store]. It writes nothing: a lease does not end.
func (s *Store) Renew(ctx context.Context, own *flannel.Own) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	_, err := s.mine(ctx, own)
	return s.wrap("renew", err)
}

// Release implements [flannel.Store]. It removes the annotations; the node keeps its pod CIDRs.
func (s *Store) Release(ctx context.Context, own *flannel.Own) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	for range tries {
		n, err := s.mine(ctx, own)
		if err == nil {
			_, err = s.annotate(ctx, n, s.names.none())
		}
		if !apierrors.IsConflict(err) {
			return s.wrap("release", err)
		}
	}
	return s.wrap("release", flannel.ErrTaken)
}

// Available sets the node's condition NetworkUnavailable to False, as flanneld does: pods can be made.
func (s *Store) Available(ctx context.Context) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	n, err := s.get(ctx)
	if err != nil {
		return s.wrap("condition", err)
	}
	now := metav1.NewTime(time.Now())
	c := corev1.NodeCondition{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "FlannelIsUp", Message: "Flannel is running on this node", LastTransitionTime: now, LastHeartbeatTime: now,
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{c}}})
	if err == nil {
		_, err = s.client.nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return s.wrap("condition", err)
}
