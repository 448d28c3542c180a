package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/vxswitch/vxswitch/flannel/kube/apiserver"
)

// A nodes is what a Store does with nodes: CoreV1().Nodes() of a clientset has it.
type nodes interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
	List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
}

// A getter reads one object of a namespace.
type getter[T any] func(ctx context.Context, namespace, name string) (T, error)

// A client is what a Store asks of an API server. That of a server is one; tests have others.
type client struct {
	nodes      nodes
	pods       getter[*corev1.Pod]
	configMaps getter[*corev1.ConfigMap]
	host       string
	streams    bool // a snapshot can be one
	close      func()
}

// core returns the kinds that are needed: a clientset would link those of all groups.
var core = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
})

// A server is the connection to an API server.
type server struct {
	rest.Interface
	params runtime.ParameterCodec
	at     *apiserver.Server
}

// dial finds an API server. It connects when it is used.
func dial(c *Config) (*server, error) {
	at, err := apiserver.Dial(&apiserver.Config{URL: c.URL, Kubeconfig: c.Kubeconfig, REST: c.REST})
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	r, err := at.Client(corev1.SchemeGroupVersion, core(), true)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return &server{r, runtime.NewParameterCodec(core()), at}, nil
}

// get reads an object. Package gentype of client-go would do what the functions here do, but with the fakes of tests in it, and
// the OpenAPI of these.
func (s *server) get(ctx context.Context, namespace, resource, name string, into runtime.Object, o metav1.GetOptions) error {
	return s.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).VersionedParams(&o, s.params).Do(ctx).Into(into)
}

// A serverNodes is the nodes of an API server.
type serverNodes struct{ s *server }

func (n serverNodes) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error) {
	node := new(corev1.Node)
	return node, n.s.get(ctx, "", "nodes", name, node, o)
}

func (n serverNodes) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	list := new(corev1.NodeList)
	return list, n.many(o).Do(ctx).Into(list)
}

func (n serverNodes) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return n.many(o).Watch(ctx)
}

// many asks for all nodes.
func (n serverNodes) many(o metav1.ListOptions) *rest.Request {
	var most time.Duration
	if o.TimeoutSeconds != nil {
		most = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return n.s.Get().Resource("nodes").VersionedParams(&o, n.s.params).Timeout(most)
}

func (n serverNodes) Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Node, error) {
	node := new(corev1.Node)
	return node, n.s.Patch(t).Resource("nodes").Name(name).SubResource(subresources...).VersionedParams(&o, n.s.params).Body(data).Do(ctx).Into(node)
}

// client returns what a Store uses.
func (s *server) client() *client {
	return &client{
		nodes: serverNodes{s},
		pods: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			p := new(corev1.Pod)
			return p, s.get(ctx, namespace, "pods", name, p, metav1.GetOptions{})
		},
		configMaps: func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
			m := new(corev1.ConfigMap)
			return m, s.get(ctx, namespace, "configmaps", name, m, metav1.GetOptions{})
		},
		host:    s.at.Host,
		streams: true,
		close:   s.at.Close,
	}
}
