"""Rebuild the package by plan.py: files move and merge, every reference follows. usage: merge.py ROOT [--check]"""
import ast, pathlib, re, sys, collections, subprocess, builtins
import os
ROOT=pathlib.Path(sys.argv[1]).resolve(); SRC=ROOT/'src/concordant'
os.environ['LAYOUT_ROOT']=str(ROOT)
sys.path.insert(0,str(pathlib.Path(__file__).parent))
import plan as P
CHECK='--check' in sys.argv

def modname(path): # 'a/b.py' -> 'a.b'
    r=path[:-3].replace('/','.')
    return r[:-9] if r.endswith('.__init__') else r
old_files={modname(p.relative_to(SRC).as_posix()):p.relative_to(SRC).as_posix() for p in SRC.rglob('*.py')}
old_files['']=old_files.pop('__init__') if '__init__' in old_files else '__init__.py'
NEW={}            # old mod -> new mod
TARGETS=collections.OrderedDict()  # new path -> [old paths]
for target,sources in P.PLAN.items():
    TARGETS[target]=sources
    for s in sources:
        assert (SRC/s).exists(), s
        assert modname(s) not in NEW, s
        NEW[modname(s)]=modname(target)
dropped={modname(f) for f in P.DROP}
covered=set(NEW)|dropped|{modname(f) for f in P.KEEP}
missing=[f for m,f in old_files.items() if m not in covered]
if missing: print('UNCOVERED', missing)
for f in P.KEEP: NEW[modname(f)]=modname(f)
NEW['']=''
is_pkg=lambda m: (SRC/(m.replace('.','/'))).is_dir() if m else True

# --- parse
class Mod: pass
mods={}
for m,f in old_files.items():
    if m in dropped: continue
    x=Mod(); x.name=m; x.path=f; x.text=(SRC/f).read_text(); x.tree=ast.parse(x.text); x.lines=x.text.split('\n')
    x.defs=collections.OrderedDict()
    for n in x.tree.body:
        if isinstance(n,(ast.FunctionDef,ast.ClassDef,ast.AsyncFunctionDef)): x.defs.setdefault(n.name,[]).append(n)
        elif isinstance(n,ast.Assign):
            for t in n.targets:
                for e in ast.walk(t):
                    if isinstance(e,ast.Name): x.defs.setdefault(e.id,[]).append(n)
        elif isinstance(n,ast.AnnAssign) and isinstance(n.target,ast.Name): x.defs.setdefault(n.target.id,[]).append(n)
        elif isinstance(n,ast.TypeAlias if hasattr(ast,'TypeAlias') else ()): x.defs.setdefault(n.name.id,[]).append(n)
    x.defs.pop('__all__',None)
    mods[m]=x

problems=[]
def conc(n): return isinstance(n,ast.ImportFrom) and n.module and (n.module=="concordant" or n.module.startswith("concordant.")) and n.level==0
def topo(sources):
    ms=[modname(s) for s in sources]; deps={}
    for m in ms:
        d=set()
        for n in mods[m].tree.body:
            if conc(n):
                mm=n.module[11:]
                for a in n.names:
                    full=(mm+'.'+a.name)
                    d.add(full if full in mods else mm)
        deps[m]=d&set(ms)-{m}
    done=[]
    def add(m,stack=()):
        if m in done: return
        if m in stack: problems.append(f'circle {stack}'); return
        for k in ms:
            if k in deps[m]: add(k,(*stack,m))
        done.append(m)
    for m in ms: add(m)
    return done
# --- clashes inside targets
RENAMES=collections.defaultdict(dict)  # old mod -> {old: new}
DEDUPE=collections.defaultdict(set)    # old mod -> names dropped since identical above
def seg(x,n): return ast.get_source_segment(x.text,n)
for (m,name),new in P.RENAME.items(): RENAMES[m][name]=new
for target,sources in TARGETS.items():
    seen={}
    for s in [mods[k].path for k in topo(sources)]:
        x=mods[modname(s)]
        for name,nodes in x.defs.items():
            now=RENAMES[x.name].get(name,name)
            if now in seen:
                y,other=seen[now]
                if len(nodes)==1 and len(other)==1 and seg(x,nodes[0])==seg(y,other[0]) :
                    DEDUPE[x.name].add(name)
                elif name.startswith('_') or True:
                    stem=P.SUFFIX.get(s, pathlib.PurePath(s).stem)
                    new=f'{now}_{stem.upper()}' if now.isupper() else (now[0]+'_'.join(['',])+'' if False else f'{now}_{stem}') if not now[:1].isupper() and not now[:2].lstrip('_')[:1].isupper() else f'{now}{"".join(w.title() for w in stem.split("_"))}'
                    RENAMES[x.name][name]=new
                    seen[new]=(x,nodes)
                    if not name.startswith('_'): problems.append(f'PUBLIC clash {target}: {name} of {s} (and {y.path}) -> {new}')
                    else: problems.append(f'private clash {target}: {name} of {s} (and {y.path}) -> {new}')
            else: seen[now]=(x,nodes)

def resolve(m,name):
    """old module, imported name -> (new module, new name, is_module)"""
    full=(m+'.'+name).lstrip('.')
    if full in old_files:      # a module is imported
        if full in dropped: raise SystemExit(f'import of dropped {full}')
        return NEW[full],None,True
    if m in dropped: raise SystemExit(f'from dropped {m} import {name}')
    home=m
    # follow re-exports out of packages' __init__ and moved names
    return NEW[home],RENAMES[home].get(name,name),False

def rename_in(text,names):
    """Scope-aware rename of module-level names in a module's text."""
    if not names: return text
    tree=ast.parse(text); lines=text.split('\n'); edits=[]
    def binds(fn,name):
        a=fn.args
        if any(x.arg==name for x in [*a.posonlyargs,*a.args,*a.kwonlyargs,*( [a.vararg] if a.vararg else []),*([a.kwarg] if a.kwarg else [])]): return True
        if isinstance(fn,ast.Lambda): return False
        glob=False; stored=False
        def walk(n):
            nonlocal glob,stored
            for c in ast.iter_child_nodes(n):
                if isinstance(c,ast.Global) and name in c.names: glob=True
                if isinstance(c,(ast.FunctionDef,ast.ClassDef,ast.AsyncFunctionDef)):
                    if c.name==name: stored=True
                    continue
                if isinstance(c,ast.Lambda): continue
                if isinstance(c,ast.Name) and c.id==name and isinstance(c.ctx,(ast.Store,ast.Del)): stored=True
                if isinstance(c,ast.alias) and (c.asname or c.name)==name: stored=True
                if isinstance(c,ast.ExceptHandler) and c.name==name: stored=True
                walk(c)
        for st in fn.body: 
            w=ast.Module(body=[st],type_ignores=[]); walk(w)
        return stored and not glob
    def visit(n,name,new,shadow):
        if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.Lambda)):
            inner=shadow or binds(n,name)
            if not isinstance(n,ast.Lambda):
                if n.name==name and not shadow and n in tops: # top-level def
                    line=lines[n.lineno-1]; col=re.compile(r'\b'+re.escape(name)+r'\b').search(line,n.col_offset).start()
                    edits.append((n.lineno,len(line[:col].encode()),name,new))
                for d in n.decorator_list: visit(d,name,new,shadow)
                for x in ast.iter_child_nodes(n.args): 
                    if isinstance(x,ast.arg):
                        if x.annotation: visit(x.annotation,name,new,shadow)
                    else: visit(x,name,new,shadow)
                if n.returns: visit(n.returns,name,new,shadow)
                for b in n.body: visit(b,name,new,inner)
            else:
                for x in ast.iter_child_nodes(n.args):
                    if not isinstance(x,ast.arg): visit(x,name,new,shadow)
                visit(n.body,name,new,inner)
            return
        if isinstance(n,ast.ClassDef):
            if n.name==name and n in tops and not shadow:
                line=lines[n.lineno-1]; col=re.compile(r'\b'+re.escape(name)+r'\b').search(line,n.col_offset).start()
                edits.append((n.lineno,len(line[:col].encode()),name,new))
        if isinstance(n,ast.Name) and n.id==name and not shadow: edits.append((n.lineno,n.col_offset,name,new))
        if isinstance(n,ast.Constant) and isinstance(n.value,str): return
        for c in ast.iter_child_nodes(n): visit(c,name,new,shadow)
    tops=set(tree.body)
    for name,new in names.items():
        for st in tree.body: visit(st,name,new,False)
    out=[l.encode() for l in lines]
    for line,col,name,new in sorted(set(edits),reverse=True):
        b=out[line-1]; assert b[col:col+len(name.encode())]==name.encode(),(line,col,name,b)
        out[line-1]=b[:col]+new.encode()+b[col+len(name.encode()):]
    return '\n'.join(b.decode() for b in out)

def import_line(node_module,aliases,here,indent='',level_names=None):
    """New import statements for `from concordant.<m> import aliases`; names now in the same file `here` give renames."""
    by=collections.OrderedDict(); renames={}
    for a in aliases:
        m=node_module
        new_m,new_n,is_mod=resolve(m,a.name)
        local=a.asname or a.name
        if is_mod:
            if new_m==here: renames[local]=None; problems.append(f'SELF module import of {m}.{a.name} in {here}'); continue
            parent,_,leaf=new_m.rpartition('.')
            by.setdefault(('concordant.'+parent).rstrip('.'),[]).append((leaf,local))
        else:
            if new_m==here:
                if local!=new_n: renames[local]=new_n
                continue
            # an imported name that was renamed keeps its local name in the importer unless the plan says otherwise
            by.setdefault(('concordant.'+new_m).rstrip('.'),[]).append((new_n,local))
    out=[]
    for mod,names in by.items():
        parts=[n if n==l else f'{n} as {l}' for n,l in names]
        out.append(f'{indent}from {mod} import {", ".join(parts)}')
    return out,renames

def conc(n): return isinstance(n,ast.ImportFrom) and n.module and (n.module=='concordant' or n.module.startswith('concordant.')) and n.level==0

def split_module(x,here):
    """-> docstring, list of import statement texts (top), type-checking imports, body text, __all__ text"""
    text=rename_in(x.text,{k:v for k,v in RENAMES[x.name].items()})
    tree=ast.parse(text); lines=text.split('\n')
    kill=set(); imports=[]; typing=[]; renames={}; alltext=None; doc=ast.get_docstring(tree,clean=False)
    def span(n): return range(n.lineno,n.end_lineno+1)
    body=tree.body
    inner_edits=[]
    for i,n in enumerate(body):
        if i==0 and isinstance(n,ast.Expr) and isinstance(n.value,ast.Constant) and isinstance(n.value.value,str): kill.update(span(n)); continue
        if isinstance(n,ast.ImportFrom) and n.module=='__future__': kill.update(span(n)); continue
        if isinstance(n,(ast.Import,ast.ImportFrom)):
            comment=''
            mm=re.search(r'#.*$',lines[n.end_lineno-1]) if n.lineno==n.end_lineno else None
            comment='  '+mm.group(0) if mm else ''
            kill.update(span(n))
            if conc(n):
                out,r=import_line(n.module[11:] if n.module!='concordant' else '',n.names,here); imports+= [o+comment for o in out]; renames.update(r)
            else: imports.append('\n'.join(lines[n.lineno-1:n.end_lineno]))
            continue
        if isinstance(n,ast.If) and 'TYPE_CHECKING' in ast.unparse(n.test) and not n.orelse and all(isinstance(b,(ast.Import,ast.ImportFrom)) for b in n.body):
            kill.update(span(n))
            for b in n.body:
                if conc(b):
                    out,r=import_line(b.module[11:] if b.module!='concordant' else '',b.names,here); typing+=out; renames.update(r)
                else: typing.append('\n'.join(l.strip() for l in lines[b.lineno-1:b.end_lineno]))
            continue
        if isinstance(n,(ast.Assign,ast.AugAssign)) and ast.unparse(n.targets[0] if isinstance(n,ast.Assign) else n.target)=='__all__':
            assert alltext is None,x.path
            alltext=ast.unparse(n.value); kill.update(span(n)); continue
        names=[n.name] if hasattr(n,'name') else []
        if isinstance(n,ast.Assign): names=[t.id for t in n.targets if isinstance(t,ast.Name)]
        if isinstance(n,ast.AnnAssign): names=[n.target.id]
        if names and all(k in DEDUPE[x.name] for k in names):
            kill.update(span(n))
            j=body.index(n)+1
            if j<len(body) and isinstance(body[j],ast.Expr) and isinstance(body[j].value,ast.Constant): kill.update(span(body[j]))
    # imports inside functions
    inside=[]
    for n in ast.walk(tree):
        if conc(n) and n.lineno not in kill:
            indent=re.match(r'\s*',lines[n.lineno-1]).group(0)
            out,r=import_line(n.module[11:] if n.module!='concordant' else '',n.names,here,indent)
            mm=re.search(r'#.*$',lines[n.end_lineno-1]); 
            if mm and out: out[-1]+='  '+mm.group(0)
            inner_edits.append((n.lineno,n.end_lineno,out)); 
            if r: problems.append(f'INSIDE renames {r} in {x.path}')
    for a,b,out in inner_edits:
        lines[a-1:b]=['\0'.join(out) if out else '\0DEL']+['\0DEL']*(b-a)
    kept=[l for i,l in enumerate(lines,1) if i not in kill]
    kept=[p for l in kept if l!='\0DEL' for p in l.split('\0')]
    btext='\n'.join(kept).strip('\n')
    btext=re.sub(r'\n{4,}','\n\n\n',btext)
    renames={k:v for k,v in renames.items() if v}
    if renames: btext=rename_in(btext,renames)
    names=None
    if alltext:
        names=alltext
    return doc,imports,typing,btext,names

def all_names(expr,x):
    """'__all__' expression as items (text), renamed."""
    t=ast.parse(expr,mode='eval').body
    items=[]
    if isinstance(t,(ast.List,ast.Tuple)):
        for e in t.elts:
            if isinstance(e,ast.Constant): items.append(RENAMES[x.name].get(e.value,e.value))
            elif isinstance(e,ast.Starred) and isinstance(e.value,(ast.Tuple,ast.List)): items+= [RENAMES[x.name].get(c.value,c.value) for c in e.value.elts]
            else: problems.append(f'__all__ of {x.path}: {ast.unparse(e)}')
    else: problems.append(f'__all__ of {x.path}: {expr[:60]}')
    return [i for i in items if i not in DEDUPE[x.name] or True]

outputs={}
for target,sources in TARGETS.items():
    here=modname(target)
    order=topo(sources)
    docs={}; imports=[]; typing=[]; bodies=[]; alls=[]
    for m in order:
        d,i,t,b,a=split_module(mods[m],here)
        docs[m]=d; imports+=i; typing+=t
        bodies.append((m,b))
        if a: alls+=all_names(a,mods[m])
    first=modname(sources[0])
    doc=P.DOC.get(target) or docs[first] or ''
    if len(order)>1 and target not in P.DOC:
        more=[]
        for s in sources[1:]:
            dd=docs[modname(s)]
            if dd and dd.strip(): more.append(dd.strip())
        doc=doc.rstrip()
        if more: doc=doc+'\n\n'+'\n\n'.join(more)+'\n'
    if '\n' in doc and not doc.endswith('\n'): doc+='\n'
    used=list(dict.fromkeys(imports))
    # conflicts of imported names
    bound={}
    for stmt in used:
        for n in ast.walk(ast.parse(stmt)):
            if isinstance(n,(ast.Import,ast.ImportFrom)):
                for al in n.names:
                    k=al.asname or (al.name.split('.')[0] if isinstance(n,ast.Import) else al.name)
                    v=(getattr(n,'module',None),al.name if isinstance(n,ast.ImportFrom) else None)
                    if k in bound and bound[k]!=v: problems.append(f'IMPORT clash in {target}: {k}: {bound[k]} / {v}')
                    bound[k]=v
    for m,_ in bodies:
        for name in mods[m].defs:
            now=RENAMES[m].get(name,name)
            if now in bound: problems.append(f'IMPORT/DEF clash in {target}: {now} imported {bound[now]} and defined in {m}')
    quote='r"""' if any(mods[m].text.startswith('r"""') for m in order) else '"""'
    parts=[f'{quote}{doc}"""','','from __future__ import annotations','']
    parts+=used
    if typing:
        ty=[t for t in dict.fromkeys(typing) if t not in used]
        if ty:
            if 'from typing import TYPE_CHECKING' not in '\n'.join(used): pass
            parts+=['','if TYPE_CHECKING:']+['    '+t.replace('\n','\n    ') for t in ty]
    if alls:
        parts+=['','__all__ = ['+', '.join(repr(n) for n in sorted(set(alls)))+']','']
    for k,(m,b) in enumerate(bodies):
        if b.strip(): parts+=['',b,'']
    text='\n'.join(parts)+'\n'
    if not any(b.strip() for _,b in bodies) and not used:
        text=f'{quote}{doc}"""\n'
    outputs[target]=text

# --- references elsewhere
def rewrite_refs(text,path):
    """imports in doctests, tests, docs; dotted strings."""
    def one(mod,names,indent,prompt):
        out=[]
        by=collections.OrderedDict()
        for part in names.split(','):
            part=part.strip()
            if not part: continue
            n,_,asn=part.partition(' as ')
            n=n.strip(); asn=asn.strip()
            try: new_m,new_n,is_mod=resolve(mod,n)
            except KeyError: return None
            if is_mod:
                parent,_,leaf=new_m.rpartition('.')
                loc=asn or n
                by.setdefault(('concordant.'+parent).rstrip('.'),[]).append(leaf if leaf==loc else f'{leaf} as {loc}')
            else:
                loc=asn or n
                by.setdefault(('concordant.'+new_m).rstrip('.'),[]).append(new_n if new_n==loc else f'{new_n} as {loc}')
        return by
    def sub_single(mt):
        pre,mod,names,rest=mt.group(1),mt.group(2)[1:] if mt.group(2) else '',mt.group(3),mt.group(4) or ''
        by=one(mod,names,pre,'')
        if by is None: return mt.group(0)
        return '\n'.join(f'{pre}from {m} import {", ".join(n)}{rest if i==0 or "noqa" in rest else ""}' for i,(m,n) in enumerate(by.items()))
    def sub_multi(mt):
        pre,mod,names=mt.group(1),mt.group(2)[1:] if mt.group(2) else '',mt.group(3)
        names=re.sub(r'#.*','',names).replace('\n',' ').replace('...',' ')
        by=one(mod,names,pre,'')
        if by is None: return mt.group(0)
        return '\n'.join(f'{pre}from {m} import {", ".join(n)}' for m,n in by.items())
    text=re.sub(r'(?m)^([ \t]*(?:>>> )?)from concordant(\.[a-z_.]+)? import \(([^)]*)\)',sub_multi,text)
    text=re.sub(r'(?m)^([ \t]*(?:>>> )?)from concordant(\.[a-z_.]+)? import ([A-Za-z_0-9, ]+?)([ \t]*(?:#.*|;.*|").*)?$',lambda mt: sub_single(mt),text)
    def sub_mid(mt):
        mod,name=mt.group(1)[1:],mt.group(2)
        if any((mod in dropped and f"{mod}.{part.split(' ')[0]}" not in old_files) or (mod not in NEW and mod not in dropped) for part in name.split(', ')): return mt.group(0)
        by=one(mod,name,'','')
        return mt.group(0) if by is None else '; '.join(f'from {m} import {", ".join(n)}' for m,n in by.items())
    text=re.sub(r'(?:\b|(?<=\\n))from concordant(\.[a-z_.]+) import ((?:\w+(?: as \w+)?)(?:, \w+(?: as \w+)?)*)',sub_mid,text)
    # dotted mentions and import concordant.a.b
    olds=sorted((m for m in NEW if m and NEW[m]!=m),key=len,reverse=True)
    pat=re.compile(r'\bconcordant\.((?:[a-z_]+\.)*[a-z_]+)((?:\.[A-Za-z_]\w*)*)')
    def dotted(mt):
        whole=mt.group(0)[len('concordant.'):]
        bits=whole.split('.')
        line_start=text_now.rfind('\n',0,mt.start())+1
        line=text_now[line_start:mt.start()]
        if re.search(r'from $',line): return mt.group(0)  # done above
        for k in range(len(bits),0,-1):
            m='.'.join(bits[:k])
            if m in NEW and NEW[m]!=m:
                rest=bits[k:]
                if rest: rest[0]=RENAMES[m].get(rest[0],rest[0])
                return '.'.join(['concordant',*NEW[m].split('.'),*rest]) if NEW[m] else '.'.join(['concordant',*rest])
            if m in NEW: return mt.group(0)
        return mt.group(0)
    text_now=text
    return pat.sub(dotted,text)

if __name__=='__main__':
    for p in problems: print(p)
    big=[(t,len(o.split('\n'))) for t,o in outputs.items() if len(o.split('\n'))>600]
    print('files',len(outputs)+len(P.KEEP),'big',big)
    if CHECK: raise SystemExit
    # write
    for m,f in old_files.items():
        if f in P.KEEP: continue
        (SRC/f).unlink()
    for t,o in outputs.items():
        p=SRC/t; p.parent.mkdir(parents=True,exist_ok=True)
        p.write_text(rewrite_refs(o,t))
    for f in P.KEEP: 
        p=SRC/f; p.write_text(rewrite_refs(p.read_text(),f))
    for t,text in P.FRESH.items():
        p=SRC/t; p.parent.mkdir(parents=True,exist_ok=True)
        if not p.exists(): p.write_text(text)
    for a,b in P.MOVE_DATA.items():
        q=SRC/b; q.parent.mkdir(parents=True,exist_ok=True); subprocess.run(['git','mv',str(SRC/a),str(q)],check=True,cwd=ROOT)
    for d in sorted((d for d in SRC.rglob('*') if d.is_dir() and d.name!='__pycache__'),reverse=True):
        rest=[x for x in d.iterdir() if x.name!='__pycache__']
        if not rest: subprocess.run(['rm','-rf',str(d)])
    for folder,exts in (('tests',('.py',)),('benchmarks',('.py','.md')),('docs',('.md','.py','.rst')),('tools',('.py','.sh'))):
        for p in (ROOT/folder).rglob('*'):
            if p.is_file() and p.suffix in exts and '_build' not in p.parts and 'layout' not in p.parts:
                t=p.read_text(); n=rewrite_refs(t,str(p))
                if n!=t: p.write_text(n)
    for name in ('README.md','CONTRIBUTING.md','pyproject.toml'):
        p=ROOT/name; t=p.read_text(); n=rewrite_refs(t,name)
        if n!=t: p.write_text(n)
