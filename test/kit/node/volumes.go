package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fill makes the pod's volumes. It waits for Secrets and ConfigMaps that aren't there yet.
func (p *pod) fill() error {
	for _, v := range p.is.Spec.Volumes {
		dir := filepath.Join(p.dir, "volumes", v.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if v.EmptyDir != nil {
			if err := os.Chmod(dir, 0o777); err != nil {
				return err
			}
		} else {
			for {
				files, missing, err := p.content(v)
				if err != nil {
					return fmt.Errorf("volume %s: %w", v.Name, err)
				}
				if missing == "" {
					if err := put(dir, files); err != nil {
						return err
					}
					break
				}
				select {
				case <-p.ending.Done():
					return p.ending.Err()
				case <-time.After(50 * time.Millisecond):
				}
			}
		}
		p.mu.Lock()
		p.volumes[v.Name] = dir
		p.mu.Unlock()
	}
	return nil
}

// refresh fills volumes of a namespace's pods anew, after a Secret or ConfigMap has changed.
func (n *Node) refresh(namespace string) {
	n.mu.Lock()
	var all []*pod
	for _, p := range n.runs {
		if p.is.Namespace == namespace && p.ending.Err() == nil {
			all = append(all, p)
		}
	}
	n.mu.Unlock()
	for _, p := range all {
		p.refresh()
	}
}

func (p *pod) refresh() {
	for _, v := range p.is.Spec.Volumes {
		p.mu.Lock()
		dir := p.volumes[v.Name]
		p.mu.Unlock()
		if dir == "" || v.Secret == nil && v.ConfigMap == nil {
			continue
		}
		files, missing, err := p.content(v)
		if err == nil && missing == "" {
			err = put(dir, files)
		}
		if err != nil && p.ending.Err() == nil {
			p.node.log("volume %s of %s/%s: %v", v.Name, p.is.Namespace, p.is.Name, err)
		}
	}
}

// content is a volume's files; missing is what isn't there yet.
func (p *pod) content(v corev1.Volume) (files map[string]string, missing string, err error) {
	files = map[string]string{}
	optional := func(o *bool) bool { return o != nil && *o }
	switch {
	case v.Secret != nil:
		values, there := p.secret(v.Secret.SecretName)
		if !there && !optional(v.Secret.Optional) {
			return nil, "Secret " + v.Secret.SecretName, nil
		}
		return files, "", pick(files, values, v.Secret.Items)
	case v.ConfigMap != nil:
		values, there := p.configMap(v.ConfigMap.Name)
		if !there && !optional(v.ConfigMap.Optional) {
			return nil, "ConfigMap " + v.ConfigMap.Name, nil
		}
		return files, "", pick(files, values, v.ConfigMap.Items)
	case v.DownwardAPI != nil:
		return files, "", p.downward(files, v.DownwardAPI.Items)
	case v.Projected == nil:
		return nil, "", fmt.Errorf("volumes of its kind aren't played")
	}
	for _, s := range v.Projected.Sources {
		err, missing := error(nil), ""
		switch {
		case s.Secret != nil:
			values, there := p.secret(s.Secret.Name)
			if !there && !optional(s.Secret.Optional) {
				missing = "Secret " + s.Secret.Name
			}
			err = pick(files, values, s.Secret.Items)
		case s.ConfigMap != nil:
			values, there := p.configMap(s.ConfigMap.Name)
			if !there && !optional(s.ConfigMap.Optional) {
				missing = "ConfigMap " + s.ConfigMap.Name
			}
			err = pick(files, values, s.ConfigMap.Items)
		case s.DownwardAPI != nil:
			err = p.downward(files, s.DownwardAPI.Items)
		case s.ServiceAccountToken != nil:
			files[s.ServiceAccountToken.Path], err = p.token(s.ServiceAccountToken)
		default:
			err = fmt.Errorf("a source of its kind isn't played")
		}
		if err != nil || missing != "" {
			return nil, missing, err
		}
	}
	return files, "", nil
}

// pick takes those keys that items name, by their paths; all, where there are none.
func pick(files, values map[string]string, items []corev1.KeyToPath) error {
	if len(items) == 0 {
		for k, v := range values {
			files[k] = v
		}
		return nil
	}
	for _, i := range items {
		v, there := values[i.Key]
		if !there && values != nil {
			return fmt.Errorf("no key %s", i.Key)
		}
		files[i.Path] = v
	}
	return nil
}

func (p *pod) downward(files map[string]string, items []corev1.DownwardAPIVolumeFile) (err error) {
	for _, i := range items {
		switch {
		case i.FieldRef != nil:
			files[i.Path], err = p.field(i.FieldRef.FieldPath)
		case i.ResourceFieldRef != nil:
			for _, c := range p.is.Spec.Containers {
				if c.Name == i.ResourceFieldRef.ContainerName {
					files[i.Path], err = amount(&c, i.ResourceFieldRef)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// token is one of the pod's service account, for an audience.
func (p *pod) token(s *corev1.ServiceAccountTokenProjection) (string, error) {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.is.Name, UID: p.is.UID},
	}}
	if s.Audience != "" {
		r.Spec.Audiences = []string{s.Audience}
	}
	account := p.is.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	ctx, cancel := context.WithTimeout(p.ending, 10*time.Second)
	defer cancel()
	r, err := p.node.client.CoreV1().ServiceAccounts(p.is.Namespace).CreateToken(ctx, account, r, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return r.Status.Token, nil
}

func (p *pod) secret(name string) (map[string]string, bool) {
	o, there, _ := p.node.secrets.GetByKey(p.is.Namespace + "/" + name)
	if !there {
		return nil, false
	}
	values := map[string]string{}
	for k, v := range o.(*corev1.Secret).Data {
		values[k] = string(v)
	}
	return values, true
}

func (p *pod) configMap(name string) (map[string]string, bool) {
	o, there, _ := p.node.configMaps.GetByKey(p.is.Namespace + "/" + name)
	if !there {
		return nil, false
	}
	values := map[string]string{}
	for k, v := range o.(*corev1.ConfigMap).BinaryData {
		values[k] = string(v)
	}
	for k, v := range o.(*corev1.ConfigMap).Data {
		values[k] = v
	}
	return values, true
}

// put replaces all files of a volume at once, as a kubelet does: they are links into the folder
// ..data, which is a link to one that never changes.
func put(dir string, files map[string]string) error {
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(next, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	data := filepath.Join(dir, "..data")
	before, _ := os.Readlink(data)
	link := filepath.Join(dir, "..next")
	if err := os.Symlink(filepath.Base(next), link); err != nil {
		return err
	}
	if err := os.Rename(link, data); err != nil {
		return err
	}
	top, err := os.ReadDir(next)
	if err != nil {
		return err
	}
	for _, e := range top {
		if err := os.Symlink(filepath.Join("..data", e.Name()), filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all { // a key that is gone
		if _, err := os.Stat(filepath.Join(dir, e.Name())); err != nil {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, before))
}
