"""After the move: paths of data and pages, homes of public names, tests into wings. usage: finish.py ROOT"""
import pathlib,re,subprocess,sys
ROOT=pathlib.Path(sys.argv[1]).resolve(); S=ROOT/'src/concordant'
import os; os.environ['LAYOUT_ROOT']=str(ROOT); sys.path.insert(0,str(pathlib.Path(__file__).parent)); import plan as P
def mn(p):
    r=p[:-3].replace('/','.'); return r[:-9] if r.endswith('.__init__') else r
NEW={mn(s):mn(t) for t,ss in P.PLAN.items() for s in ss}
def edit(path,*pairs):
    p=ROOT/path; t=p.read_text()
    for a,b in pairs:
        if a not in t: print('NOT FOUND',path,a); continue
        t=t.replace(a,b)
    p.write_text(t)
# homes
p=S/'__init__.py'; t=p.read_text()
t=re.sub(r'(?m)^    "(\w+)": "([a-z_.]+)",$',lambda m: f'    "{m[1]}": "{NEW.get(m[2],m[2])}",',t)
p.write_text(t)
for a,b in (('reporting/page','apps/report/page'),('data','apps/data')):
    if (S/a).exists():
        (S/b).parent.mkdir(parents=True,exist_ok=True)
        subprocess.run(['git','mv',str(S/a),str(S/b)],cwd=ROOT,check=True)
for d in ('reporting',):
    if (S/d).exists(): subprocess.run(['rm','-rf',str(S/d)])
edit('src/concordant/apps/report/report.py',('/ "reporting" / "page"','/ "apps" / "report" / "page"'))
edit('src/concordant/apps/commands/demo.py',('/ "data" / "llmfao"','/ "apps" / "data" / "llmfao"'))
for p in [*ROOT.glob('*.md'),ROOT/'pyproject.toml',*(ROOT/'docs').rglob('*'),*(ROOT/'tests').rglob('*'),*(ROOT/'benchmarks').rglob('*'),*(ROOT/'tools').rglob('*')]:
    if p.is_file() and p.suffix in ('.md','.py','.toml','.rst','.sh','.txt') and '_build' not in p.parts and 'layout' not in p.parts and p.name!='CHANGELOG.md':
        t=p.read_text(); n=t.replace('src/concordant/data/','src/concordant/apps/data/').replace('src/concordant/reporting/page','src/concordant/apps/report/page').replace('"src" / "concordant" / "data"','"src" / "concordant" / "apps" / "data"').replace('concordant/data/llmfao','concordant/apps/data/llmfao').replace('concordant/reporting/page','concordant/apps/report/page')
        if n!=t: p.write_text(n)
# tests into wings
T=ROOT/'tests'
WINGS={
'kernels':'kernels',
'preferences':'preferences sampling graphs',
'io':'reading reading_* engines folders preflib bad_input store store_*',
'ranking':'bradley_terry bradley_terry_* plackett_luce scores structures structure_laws ranking parity best_order best_order_real uncertainty_*',
'losses':'surrogates minimise elicitation metrics auc graded',
'learning':'features targets informed least_squares partial_sums stochastic solvers_* rankers_* rankboost streamed torch_*',
'auditing':'audit audit_summary populations gain_laws noise held_out asking settling counterexamples',
'abstention':'abstention_* abstaining abstaining_real',
'apps':'command *_command export export_* serve report report_* reported reproduction_* models interrupted progress fuzz_commands spark_*',
'.':'architecture docs docs_reference distribution packaging',
}
from fnmatch import fnmatch
moved={}
for p in sorted(T.glob('test_*.py')):
    n=p.stem[5:]; home=None
    for w,pats in WINGS.items():
        if n in pats.split(): home=w
    if home is None:
        for w,pats in WINGS.items():
            if any(fnmatch(n,x) for x in pats.split()): home=home or w
    if home is None:
        from collections import Counter
        c=Counter(re.findall(r'from concordant\.([a-z_]+)',p.read_text())); home=c.most_common(1)[0][0] if c else 'apps'
        if home in('torch','errors','progress'): home='learning' if home=='torch' else 'apps'
        print('test by imports:',p.name,'->',home)
    if home=='.': continue
    (T/home).mkdir(exist_ok=True)
    t=p.read_text()
    t=t.replace('Path(__file__).resolve().parent.parent','Path(__file__).resolve().parents[2]').replace('Path(__file__).parents[1] / "docs"','Path(__file__).parents[2] / "docs"')
    t=t.replace('Path(__file__).parent / "data"','Path(__file__).parents[1] / "data"').replace('Path(__file__).parent / "spark_cluster.py"','Path(__file__).parents[1] / "spark_cluster.py"')
    p.write_text(t)
    subprocess.run(['git','add','-N',str(p)],cwd=ROOT)
    subprocess.run(['git','mv',str(p),str(T/home/p.name)],cwd=ROOT,check=True)
    moved[p.name]=home
for p in T.rglob('*.py'):
    t=p.read_text(); n=t.replace('Path(cc.__file__).parent / "data"','Path(cc.__file__).parent / "apps" / "data"')
    if n!=t: p.write_text(n)
for p in [*ROOT.glob('*.md'),ROOT/'Makefile',*(ROOT/'docs').rglob('*.md'),*(ROOT/'docs').rglob('*.py'),*T.rglob('*.py'),*(ROOT/'benchmarks').rglob('*')]:
    if p.is_file() and p.suffix in('.md','.py','') and p.name!='CHANGELOG.md' and '_build' not in p.parts and 'layout' not in p.parts:
        t=p.read_text(); n=re.sub(r'\btests/(test_\w+\.py)',lambda m: f'tests/{moved[m[1]]}/{m[1]}' if m[1] in moved else m[0],t)
        if n!=t: p.write_text(n)
edit('pyproject.toml',('testpaths = ["tests", "src"]','testpaths = ["tests", "src"]\npythonpath = ["tests"]'))
edit('Makefile',("--ignore-glob='tests/test_spark_*'","--ignore-glob='tests/apps/test_spark_*'"),("--ignore-glob='tests/test_reproduction_*'","--ignore-glob='tests/apps/test_reproduction_*'"))
