package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// An API server that makes no streams of snapshots, which says that such a request is invalid, is asked for a list. Another error is the end.
func TestNoStream(t *testing.T) {
	kind := schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}
	for name, c := range map[string]struct {
		refuse error
		want   string
	}{
		"no streams": {apierrors.NewInvalid(kind, "", nil), "a"},
		"forbidden":  {apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no")), ""},
	} {
		w := watch.NewFake()
		s := &Source{Stream: true, Timeout: time.Minute, Version: func() string { return "" },
			Lister: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) { // as a client: with an ended context it fails
				return &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}, ctx.Err()
			},
			Begin: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents != nil {
					return nil, c.refuse
				}
				go w.Stop()
				return w, nil
			},
		}
		all := cache.NewStore(cache.MetaNamespaceKeyFunc)
		err := s.Follow(t.Context(), new(corev1.Node), all)
		if got := strings.Join(all.ListKeys(), " "); got != c.want || c.want == "" && !errors.Is(err, c.refuse) || c.want != "" && !errors.Is(err, ErrEnded) {
			t.Errorf("%s: has %q, want %q; %v", name, got, c.want, err)
		}
	}
}
