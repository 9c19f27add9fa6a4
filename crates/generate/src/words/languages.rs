//! The other languages in which games are reviewed. Subjects of one language agree in gender and number, so that every
//! predicate fits every subject.

use super::Voice;

/// Every language but English, with its share among the texts that are not English.
pub(crate) const OTHERS: [(u16, &Voice); 12] = [
    (30, &RUSSIAN),
    (12, &GERMAN),
    (14, &SPANISH),
    (10, &FRENCH),
    (14, &PORTUGUESE),
    (12, &CHINESE),
    (4, &JAPANESE),
    (5, &KOREAN),
    (8, &TURKISH),
    (8, &POLISH),
    (4, &ITALIAN),
    (2, &SWEDISH),
];

/// What the grammars below have in common: their adjectives stand in `praise` and `blame`.
const BARE: Voice = Voice {
    subjects: &[],
    kinds: &[],
    praise: &[],
    blame: &[],
    good: &[],
    bad: &[],
    intensifiers: &[],
    sentences: [&[], &[], &[]],
    exclamations: [&[], &[], &[]],
    spaced: true,
};

const RUSSIAN: Voice = Voice {
    subjects: &["Игра", "Графика", "История", "Музыка", "Атмосфера", "Оптимизация"],
    praise: &["просто отличная", "очень красивая", "лучше, чем я ожидал", "на высшем уровне", "по-настоящему интересная"],
    blame: &["ужасная", "очень скучная", "хуже, чем в первой части", "совсем не понравилась", "просто никакая"],
    sentences: [
        &["%s %p.", "%s %p, советую всем.", "Потратил на это больше ста часов и не жалею.", "Очень рекомендую эту игру своим друзьям!"],
        &["Купил на распродаже вместе с другом.", "Сервера находятся в Европе.", "Прошёл половину сюжета за выходные.", "Играю на старом ноутбуке."],
        &["%s %n.", "%s %n, не покупайте.", "Постоянно вылетает на рабочий стол.", "Разработчики забросили проект, верните деньги."],
    ],
    exclamations: [&["Отличная игра!", "Мне понравилось", "Шедевр, советую"], &["Ну такое", "Пока не понял"], &["Не покупайте", "Полный отстой", "Скучно и дорого"]],
    ..BARE
};

const GERMAN: Voice = Voice {
    subjects: &["das Spiel", "das Kampfsystem", "das Leveldesign", "das Ende", "das Tutorial", "das neue Update"],
    praise: &["wirklich großartig", "viel besser als erwartet", "sehr gut gelungen", "einfach wunderschön", "jeden Cent wert"],
    blame: &["leider langweilig", "völlig kaputt", "schlechter als der Vorgänger", "eine große Enttäuschung", "nicht besonders gut"],
    sentences: [
        &["%s ist %p.", "Ich finde, %s ist %p.", "Ich kann das nur weiterempfehlen!", "Mit Freunden macht es richtig viel Spaß."],
        &["Ich habe es im Angebot gekauft.", "Man sammelt Holz und baut sich eine Hütte.", "Bisher habe ich zwölf Stunden gespielt.", "Die Server stehen in Frankfurt."],
        &["%s ist %n.", "Für mich ist es %n.", "Ständig stürzt alles ab und niemand antwortet.", "Ich möchte mein Geld zurück."],
    ],
    exclamations: [&["Sehr gutes Spiel!", "Macht Spaß", "Unbedingt kaufen"], &["Ganz in Ordnung", "Mal sehen"], &["Nicht kaufen!", "Schrott", "Leider sehr schlecht"]],
    ..BARE
};

const SPANISH: Voice = Voice {
    subjects: &["el juego", "el combate", "el modo historia", "el apartado gráfico", "el final", "el multijugador"],
    praise: &["muy divertido", "realmente increíble", "mejor de lo que esperaba", "una obra maestra", "bastante entretenido"],
    blame: &["muy aburrido", "un desastre total", "peor que el anterior", "demasiado repetitivo", "una pérdida de tiempo"],
    sentences: [
        &["%s es %p.", "Para mí, %s es %p.", "Lo recomiendo mucho, sobre todo con amigos.", "Llevo más de cien horas y todavía me encanta."],
        &["Lo compré en las rebajas de verano.", "Se juega con mando o con teclado.", "Los servidores están en Brasil.", "Todavía no he terminado la campaña."],
        &["%s es %n.", "No lo compren, %s es %n.", "Se cierra cada cinco minutos y nadie lo arregla.", "Quiero que me devuelvan el dinero."],
    ],
    exclamations: [&["¡Muy buen juego!", "Me encanta", "Lo recomiendo"], &["Está bien", "Todavía no sé"], &["No lo compren", "Muy malo", "Qué aburrido"]],
    ..BARE
};

const FRENCH: Voice = Voice {
    subjects: &["le jeu", "le scénario", "le système de combat", "le mode multijoueur", "le dernier niveau", "le tutoriel"],
    praise: &["vraiment excellent", "très agréable", "bien meilleur que prévu", "un vrai chef-d'œuvre", "plutôt réussi"],
    blame: &["vraiment mauvais", "très décevant", "complètement raté", "trop répétitif", "une perte de temps"],
    sentences: [
        &["%s est %p.", "Je trouve que c'est %p.", "Je le recommande à tous ceux qui aiment le genre.", "On s'amuse beaucoup entre amis !"],
        &["Je l'ai acheté pendant les soldes.", "On commence dans un petit village au bord de la mer.", "J'y ai joué une dizaine d'heures.", "Les serveurs sont à Paris."],
        &["%s est %n.", "Malheureusement, c'est %n.", "Il plante toutes les dix minutes, c'est insupportable.", "Je veux être remboursé."],
    ],
    exclamations: [&["Très bon jeu !", "J'adore ce jeu", "À acheter les yeux fermés"], &["Pas mal sans plus", "À voir"], &["À éviter", "C'est nul", "Quelle déception"]],
    ..BARE
};

const PORTUGUESE: Voice = Voice {
    subjects: &["o jogo", "o combate", "o enredo", "o gráfico", "o modo online", "o final"],
    praise: &["muito bom", "incrivelmente divertido", "melhor do que eu esperava", "uma obra-prima", "bem feito e bonito"],
    blame: &["muito ruim", "uma decepção", "cheio de erros", "chato demais", "pior do que o primeiro"],
    sentences: [
        &["%s é %p.", "Na minha opinião, %s é %p.", "Não consigo parar de jogar com os meus amigos.", "Recomendo para todo mundo, vale cada centavo!"],
        &["Comprei na promoção de inverno.", "Você começa numa ilha e precisa construir uma casa.", "Ainda não terminei a campanha.", "O servidor fica em São Paulo."],
        &["%s é %n.", "Não comprem, %s é %n.", "Trava o tempo todo e ninguém conserta.", "Quero o meu dinheiro de volta."],
    ],
    exclamations: [&["Muito bom!", "Melhor jogo, recomendo", "Vale a pena"], &["Mais ou menos", "Ainda não sei"], &["Não comprem", "Horrível", "Não vale a pena"]],
    ..BARE
};

const ITALIAN: Voice = Voice {
    subjects: &["il gioco", "il combattimento", "il finale", "il comparto grafico", "il livello iniziale"],
    praise: &["davvero bellissimo", "molto divertente", "meglio di quanto pensassi", "un piccolo capolavoro"],
    blame: &["molto noioso", "una grande delusione", "pieno di difetti", "peggio del precedente"],
    sentences: [
        &["%s è %p.", "Secondo me %s è %p.", "Lo consiglio a tutti gli appassionati del genere.", "Con gli amici ci si diverte tantissimo!"],
        &["L'ho comprato durante i saldi.", "Si comincia in un piccolo villaggio.", "Ci ho giocato una decina di ore."],
        &["%s è %n.", "Purtroppo %s è %n.", "Si blocca ogni volta che apro la mappa.", "Vorrei indietro i miei soldi."],
    ],
    exclamations: [&["Bellissimo gioco!", "Lo consiglio"], &["Così così, vedremo"], &["Non compratelo", "Che delusione"]],
    ..BARE
};

const POLISH: Voice = Voice {
    subjects: &["Ta gra", "Fabuła", "Oprawa graficzna", "Muzyka", "Kampania"],
    praise: &["jest naprawdę świetna", "bardzo mi się podoba", "jest lepsza, niż myślałem", "jest po prostu piękna"],
    blame: &["jest bardzo nudna", "jest pełna błędów", "mnie rozczarowała", "jest gorsza niż poprzednia część"],
    sentences: [
        &["%s %p.", "%s %p i warto w to zagrać.", "Polecam każdemu, kto lubi takie gry!", "Spędziłem przy niej ponad sto godzin."],
        &["Kupiłem ją na wyprzedaży.", "Serwery stoją w Warszawie.", "Gram na starszym komputerze z kolegami."],
        &["%s %n.", "%s %n, nie kupujcie.", "Ciągle się zawiesza i nikt tego nie naprawia.", "Chcę zwrotu pieniędzy."],
    ],
    exclamations: [&["Świetna gra!", "Polecam każdemu"], &["Może być, zobaczymy"], &["Nie polecam", "Strata pieniędzy"]],
    ..BARE
};

const TURKISH: Voice = Voice {
    subjects: &["Oyun", "Hikâye", "Grafikler", "Müzikler", "Çok oyunculu mod"],
    praise: &["gerçekten çok güzel", "beklediğimden çok daha iyi", "harika olmuş", "parasını sonuna kadar hak ediyor"],
    blame: &["çok sıkıcı", "beklediğim gibi değil", "berbat olmuş", "ilk oyundan daha kötü"],
    sentences: [
        &["%s %p.", "%s %p, herkese tavsiye ederim.", "Arkadaşlarla oynamak çok eğlenceli!", "Yüz saatten fazla oynadım ve pişman değilim."],
        &["Yaz indiriminde aldım.", "Sunucular Almanya'da bulunuyor.", "Henüz senaryoyu bitirmedim."],
        &["%s %n.", "%s %n, sakın almayın.", "Sürekli çöküyor ve kimse düzeltmiyor.", "Paramı geri istiyorum."],
    ],
    exclamations: [&["Çok güzel oyun", "Kesinlikle alın"], &["Fena değil, bakacağız"], &["Sakın almayın", "Para tuzağı, çok kötü"]],
    ..BARE
};

const SWEDISH: Voice = Voice {
    subjects: &["spelet", "slutet", "stridssystemet", "ljudet", "tempot"],
    praise: &["riktigt bra", "mycket bättre än jag trodde", "väldigt vackert", "värt varenda krona"],
    blame: &["väldigt tråkigt", "helt trasigt", "sämre än det förra", "en stor besvikelse"],
    sentences: [
        &["%s är %p.", "Jag tycker att %s är %p.", "Rekommenderas till alla som gillar genren!"],
        &["Jag köpte det på rea.", "Man börjar i en liten by vid havet.", "Jag har inte spelat klart ännu."],
        &["%s är %n.", "Köp det inte, %s är %n.", "Det kraschar hela tiden och ingen bryr sig."],
    ],
    exclamations: [&["Jättebra spel, köp det"], &["Helt okej, får se"], &["Köp inte det här", "Mycket dåligt"]],
    ..BARE
};

const CHINESE: Voice = Voice {
    subjects: &["这个游戏", "画面", "剧情", "音乐", "战斗系统", "联机模式"],
    praise: &["非常好玩", "真的很棒", "比我想象的好得多", "值得入手", "做得很用心"],
    blame: &["太无聊了", "让人失望", "优化很差", "不如前作", "根本没法玩"],
    sentences: [
        &["%s%p。", "%s%p，推荐给大家！", "和朋友一起玩特别开心。", "已经玩了一百多个小时，完全停不下来。"],
        &["打折的时候买的。", "服务器在香港。", "我还没有通关。", "一局大概二十分钟。"],
        &["%s%n。", "%s%n，不要买。", "经常闪退，开发商也不管。", "我要退款。"],
    ],
    exclamations: [&["好评！", "非常好的游戏", "神作，强烈推荐"], &["一般般吧", "还没玩完"], &["垃圾游戏，差评", "不推荐购买", "浪费时间"]],
    spaced: false,
    ..BARE
};

const JAPANESE: Voice = Voice {
    subjects: &["このゲームは", "グラフィックは", "ストーリーは", "音楽は", "操作性は"],
    praise: &["とても面白いです", "本当に素晴らしいです", "思ったより良かったです", "最高でした"],
    blame: &["とてもつまらないです", "がっかりしました", "前作より悪くなっています", "最悪でした"],
    sentences: [
        &["%s%p。", "%s%p。ぜひ遊んでみてください！", "友達と一緒に遊ぶと楽しいです。"],
        &["セールの時に買いました。", "まだクリアしていません。", "コントローラーで遊んでいます。"],
        &["%s%n。", "%s%n。おすすめできません。", "すぐに落ちるので返金してもらいました。"],
    ],
    exclamations: [&["神ゲーです！", "とても楽しい"], &["まあまあです"], &["おすすめしません", "つまらない"]],
    spaced: false,
    ..BARE
};

const KOREAN: Voice = Voice {
    subjects: &["이 게임은", "그래픽은", "스토리는", "음악은", "전투는"],
    praise: &["정말 재미있습니다", "생각보다 훨씬 좋습니다", "아주 훌륭합니다", "돈이 아깝지 않아요"],
    blame: &["너무 지루합니다", "정말 실망했어요", "전작보다 못합니다", "버그가 너무 많아요"],
    sentences: [
        &["%s %p.", "%s %p. 강력히 추천합니다!", "친구들과 같이 하면 정말 즐거워요."],
        &["할인할 때 샀습니다.", "아직 엔딩을 보지 못했어요.", "한 판에 이십 분 정도 걸립니다."],
        &["%s %n.", "%s %n. 사지 마세요.", "계속 튕기는데 고쳐 주지를 않네요."],
    ],
    exclamations: [&["갓겜입니다!", "정말 재밌어요"], &["그냥 그래요"], &["사지 마세요", "돈 낭비입니다"]],
    ..BARE
};
