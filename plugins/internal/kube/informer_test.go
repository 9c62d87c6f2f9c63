package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// TestInformerHasSynced: objects that are kept, and that the handler wasn't told of yet, aren't
// synced.
func TestInformerHasSynced(t *testing.T) {
	list := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			named := func(name string) corev1.ConfigMap { return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}} }
			return &corev1.ConfigMapList{Items: []corev1.ConfigMap{named("a"), named("b")}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("it lists")
			}
			return watch.NewFake(), nil
		},
	}
	first, rest := make(chan struct{}), make(chan struct{})
	told := 0
	i, err := Tell(cache.NewSharedIndexInformer(list, &corev1.ConfigMap{}, 0, cache.Indexers{}), cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		if told++; told == 1 {
			close(first)
			<-rest
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	go i.RunWithContext(t.Context())
	<-first
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(soon.Done(), i.SharedIndexInformer.HasSynced) {
		t.Fatal("the list is not in")
	}
	if i.HasSynced() {
		t.Error("it has synced, and the handler was told of one")
	}
	close(rest)
	if !cache.WaitForCacheSync(soon.Done(), i.HasSynced) {
		t.Fatal("it hasn't synced")
	}
	if told != 2 {
		t.Errorf("it was told of %d", told)
	}
}
