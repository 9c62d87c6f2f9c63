{{/* What is made is called as istiod's is: Services, accounts and labels stay those that proxies and tools know. */}}
{{- define "coxswain.name" -}}
istiod{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- define "coxswain.clusterrole" -}}
istiod-clusterrole{{ with .Values.revision }}-{{ . }}{{ end }}-{{ .Release.Namespace }}
{{- end -}}

{{/* The ConfigMap with settings and plugins, which istiod's chart does not have. */}}
{{- define "coxswain.own" -}}
coxswain{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- define "coxswain.labels" -}}
app: istiod
istio.io/rev: {{ .Values.revision | default "default" | quote }}
operator.istio.io/component: Pilot
install.operator.istio.io/owning-resource: {{ .Values.ownerName | default "unknown" }}
istio: pilot
release: {{ .Release.Name }}
app.kubernetes.io/name: istiod
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: istio
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Labels by which pods are found. They are istiod's, whose Deployment a release may have had before: they can't be changed. */}}
{{- define "coxswain.selector" -}}
{{- if .Values.revision -}}
app: istiod
istio.io/rev: {{ .Values.revision | quote }}
{{- else -}}
istio: pilot
{{- end -}}
{{- end -}}

{{/* Values of the control plane: those at the top, and over them those below pilot. */}}
{{- define "coxswain.pilot" -}}
{{- $top := omit .Values "global" "pilot" "meshConfig" "revision" "ownerName" "coxswain" "webhooks" "telemetry" -}}
{{- mergeOverwrite (deepCopy $top) (deepCopy (.Values.pilot | default dict)) | toYaml -}}
{{- end -}}

{{- define "coxswain.image" -}}
{{- $pilot := include "coxswain.pilot" . | fromYaml -}}
{{- $hub := $pilot.hub | default .Values.global.hub -}}
{{- if contains "/" $pilot.image -}}
{{ $pilot.image }}
{{- else if $hub -}}
{{ $hub }}/{{ $pilot.image }}:{{ $pilot.tag | default .Values.global.tag | default .Chart.AppVersion }}
{{- else -}}
{{- fail "no image is published: push the one that `make image` makes to a registry of yours, and name that in global.hub, or the whole image in image" -}}
{{- end -}}
{{- end -}}

{{/* The level of istiod's default:LEVEL. */}}
{{- define "coxswain.level" -}}
{{- $level := .Values.global.logging.level | default "default:info" -}}
{{- if not (regexMatch "^(default:|all:)?(debug|info|warn|error|none|fatal)$" $level) -}}
{{- fail (printf "global.logging.level is %q: only default:debug, info, warn and error are known; levels of parts are set while it runs, by coxswain log set" $level) -}}
{{- end -}}
{{- regexReplaceAll "none|fatal" (regexReplaceAll "^.*:" $level "") "error" -}}
{{- end -}}

{{/* Which of istiod's values mean nothing here: the first that is found fails. */}}
{{- define "coxswain.refuse" -}}
{{- range $path, $hint := .refused -}}
  {{- range $root := list "" "pilot." -}}
    {{- $at := $.Values -}}
    {{- $found := true -}}
    {{- range $key := splitList "." (print $root $path) -}}
      {{- if and $found (kindIs "map" $at) (hasKey $at $key) -}}
        {{- $at = index $at $key -}}
      {{- else -}}
        {{- $found = false -}}
      {{- end -}}
    {{- end -}}
    {{- if $found -}}
      {{- fail (printf "%s%s is a value of istiod's chart that means nothing here: %s" $root $path $hint) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Rules of a role in a file of deploy/kubernetes: (dict "root" $ "file" FILE "kind" KIND "map" the ConfigMap's name
"only" resources, of which a rule has one first). */}}
{{- define "coxswain.rules" -}}
{{- $kind := .kind -}}
{{- $map := .map | default "istio" -}}
{{- $only := .only -}}
{{- range $text := regexSplit "(?m)^---$" (.root.Files.Get .file) -1 -}}
  {{- $role := fromYaml $text -}}
  {{- if eq ($role.kind | default "") $kind -}}
    {{- range $rule := $role.rules }}
      {{- $rule = deepCopy $rule -}}
      {{- if or (not $only) (has (first $rule.resources) $only) -}}
      {{- if eq (toJson $rule.resourceNames) "[\"istio\"]" -}}
        {{- $rule = set $rule "resourceNames" (list $map) -}}
      {{- end -}}
      {{- if and $.lease (eq (toJson $rule.resourceNames) "[\"istio-gateway-deployment-default\"]") -}}
        {{- $rule = set $rule "resourceNames" (list $.lease) -}}
      {{- end }}
      {{- if has "istio-gateway-status-leader-default" ($rule.resourceNames | default list) -}}
        {{- $rule = set $rule "resourceNames" (append (without $rule.resourceNames "istio-gateway-status-leader-default") (printf "istio-gateway-status-leader-%s" ($.root.Values.revision | default "default"))) -}}
      {{- end -}}
      {{- if and $.signers (eq (toJson $rule.resources) "[\"signers\"]") -}}
        {{- $rule = set $rule "resourceNames" $.signers -}}
      {{- end }}
- {{ toYaml $rule | nindent 2 | trim }}
      {{- end }}
    {{- end }}
  {{- end -}}
{{- end -}}
{{- end -}}
